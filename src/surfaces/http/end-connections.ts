import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { App } from "./context.ts";

/** Milliseconds that a server which closes leaves to a connection: to one that waits for an answer, and to any other to say goodbye. */
const LAST_ANSWER_MS = 5000;
const GOODBYE_MS = 500;
const LOOK_MS = 50;

/**
 * Lets a server that closes answer what it was asked, and ends every connection: one that is kept alive, one that asked nothing
 * yet, and a WebSocket whose client does not say goodbye would each keep it open.
 */
export function endConnections(app: App): void {
  const open = new Set<Socket>();
  const asking = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  app.server.on("request", ({ socket }: IncomingMessage, answer: ServerResponse) => {
    asking.add(socket);
    answer.once("close", () => asking.delete(socket));
  });
  app.addHook("preClose", async () => {
    const since = performance.now();
    const look = setInterval(() => {
      const ms = performance.now() - since;
      for (const socket of open) if (ms > (asking.has(socket) ? LAST_ANSWER_MS : GOODBYE_MS)) socket.destroy();
    }, LOOK_MS);
    app.server.once("close", () => clearInterval(look));
  });
}
