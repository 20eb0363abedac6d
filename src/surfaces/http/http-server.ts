import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";

export type ConnectionLimits = {
  /** The most connections at once, in total and per address. */
  max_connections: number;
  max_connections_per_address: number;
};

/** Time limits for a request's headers and for the whole request, in milliseconds. */
const HEADERS_MS = 15_000;
const REQUEST_MS = 30_000;
/** Time limits for an idle connection, and for a response that its client does not read, in milliseconds. */
const KEEP_ALIVE_MS = 65_000;
export const SILENT_MS = 120_000;
/** How often these limits are checked, in milliseconds. */
const CHECK_MS = 1000;

/**
 * The server that everything listens on.
 *
 * CONNECTION-1  Every connection has an error listener for its whole life.
 * CONNECTION-2  A client that sends nothing, sends slowly, or reads nothing is dropped after the times above.
 * CONNECTION-3  Only a WebSocket is an upgrade; a request for any other protocol (`curl --http2`) is answered as HTTP/1.1.
 */
export function newHttpServer(handler: RequestListener, limits: ConnectionLimits): Server {
  const server = createServer(
    {
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_MS,
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
    },
    handler,
  );
  server.setTimeout(SILENT_MS);
  server.maxConnections = limits.max_connections;
  limitPerAddress(server, limits.max_connections_per_address);
  return server;
}

function limitPerAddress(server: Server, most: number): void {
  const open = new Map<string, number>();
  server.on("connection", (socket: Socket) => {
    socket.on("error", () => {});
    const address = socket.remoteAddress ?? "";
    const count = (open.get(address) ?? 0) + 1;
    open.set(address, count);
    socket.once("close", () => {
      const left = (open.get(address) ?? 1) - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
    if (count > most) socket.destroy();
  });
}
