import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";

export type ConnectionLimits = {
  /** Connections at once, in all and from one address. */
  max_connections: number;
  max_connections_per_address: number;
};

/** Milliseconds until a client must have sent a request's headers, and the whole request. */
const HEADERS_MS = 15_000;
const REQUEST_MS = 30_000;
/** Milliseconds that a connection may rest between requests, and in the middle of an answer that its client does not read. */
const KEEP_ALIVE_MS = 65_000;
export const SILENT_MS = 120_000;
/** How often that is looked at. */
const CHECK_MS = 1000;

/**
 * The server that everything listens on.
 *
 * CONNECTION-1  Every connection has an error listener from its first moment until it is gone, whoever else has one.
 * CONNECTION-2  A client that sends nothing, slowly, or reads nothing is dropped after the times above.
 * CONNECTION-3  Only a WebSocket is an upgrade; what asks for any other protocol (`curl --http2`) is answered as HTTP/1.1.
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
