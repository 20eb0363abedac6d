import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { App } from "./context.ts";

/** How long a closing server leaves a connection open, in milliseconds: with a request in progress, and otherwise. */
const LAST_RESPONSE_MS = 5000;
const IDLE_MS = 500;
const CHECK_MS = 50;

/**
 * Lets a closing server finish its responses, then ends every connection: idle keep-alive connections, unused ones and
 * WebSockets whose client does not close would each keep it open.
 */
export function endConnections(app: App): void {
  const open = new Set<Socket>();
  const active = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  app.server.on("request", ({ socket }: IncomingMessage, answer: ServerResponse) => {
    active.add(socket);
    answer.once("close", () => active.delete(socket));
  });
  app.addHook("preClose", async () => {
    const since = performance.now();
    const check = setInterval(() => {
      const ms = performance.now() - since;
      for (const socket of open) if (ms > (active.has(socket) ? LAST_RESPONSE_MS : IDLE_MS)) socket.destroy();
    }, CHECK_MS);
    app.server.once("close", () => clearInterval(check));
  });
}
