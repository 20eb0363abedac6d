import type { Socket as Connection } from "node:net";
import type { Socket } from "socket.io";
import type { WebSocket } from "ws";
import type { Reader } from "../slow-readers.ts";

/** How long a client gets to read why it is dropped, in milliseconds. */
const DROP_GRACE_MS = 5000;
/** More waiting packets than this are too many, whatever their size. */
const MOST_PACKETS = 20_000;

/** The parts of Engine.IO's connection that show how far the client has read. */
type Engine = {
  transport: { socket?: WebSocket & { _socket: Connection | null } };
  writeBuffer: { data?: unknown }[];
  on(event: "drain", listener: () => void): void;
  close(discard: boolean): void;
};

/** A Socket.IO client, over either transport. */
export function socketReader(socket: Socket): Reader {
  const engine = socket.conn as unknown as Engine;
  let drains = 0;
  engine.on("drain", () => {
    drains += 1;
  });
  return {
    buffered() {
      const { writeBuffer, transport } = engine;
      if (writeBuffer.length > MOST_PACKETS) return Number.POSITIVE_INFINITY;
      const queued = writeBuffer.reduce((sum, { data }) => sum + (typeof data === "string" ? data.length : 1), 0);
      return queued + (transport.socket?.bufferedAmount ?? 0);
    },
    delivered() {
      const connection = engine.transport.socket?._socket;
      return drains + (connection ? connection.bytesWritten - connection.writableLength : 0);
    },
    drop(reason) {
      socket.emit("error", { code: "reader_too_slow", message: reason });
      // Frees its buffer at once; closing the connection would wait for a client that does not read.
      socket.disconnect(true);
      setTimeout(() => {
        engine.close(true);
        engine.transport.socket?.terminate();
      }, DROP_GRACE_MS);
    },
  };
}
