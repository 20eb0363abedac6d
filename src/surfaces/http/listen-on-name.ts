import { lookup as lookUp } from "node:dns/promises";
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, createServer, isIP } from "node:net";
import { isLoopback } from "../access.ts";

type Lookup = (host: string) => Promise<{ address: string }[]>;
const everyAddress: Lookup = (host) => lookUp(host, { all: true });

/**
 * A server listens on the first address of a name only, and `localhost` is often two: whoever tries the other one is refused. So
 * the server also takes what comes to the other loopback addresses of its name, at the same port. Answers what stops that.
 */
export async function listenOnName(server: Server, host: string, lookup = everyAddress): Promise<() => Promise<void>> {
  if (isIP(host) !== 0) return async () => {};
  const main = server.address() as AddressInfo;
  const found = await lookup(host).catch(() => []);
  const others = new Set(found.map(({ address }) => address).filter((address) => isLoopback(address)));
  others.delete(main.address);
  const listening = await Promise.all(
    [...others].map(async (address) => {
      // Half-open as HTTP needs it; every limit is kept by the server that takes the connection.
      const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit("connection", socket));
      other.maxConnections = server.maxConnections;
      other.listen(main.port, address);
      try {
        await once(other, "listening");
        return [other];
      } catch (error) {
        // A machine without IPv6 may have a name for its loopback address all the same.
        if ((error as NodeJS.ErrnoException).code === "EADDRNOTAVAIL") return [];
        throw error;
      }
    }),
  );
  return async () => {
    for (const other of listening.flat()) other.close();
  };
}
