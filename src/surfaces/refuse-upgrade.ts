import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";

/** Answers an upgrade on the raw socket, which is nobody else's any more, and closes it whether the client reads the answer or not. */
export function refuseUpgrade(socket: Duplex, status: number): void {
  // Node took its own listener away when it handed the socket over: a reset would be uncaught.
  socket.on("error", () => {});
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}
