import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";

/** Answers an upgrade on the raw socket and closes it, whether or not the client reads the response. */
export function refuseUpgrade(socket: Duplex, status: number): void {
  // Node removed its own listener when it handed the socket over: a reset would be uncaught.
  socket.on("error", () => {});
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}
