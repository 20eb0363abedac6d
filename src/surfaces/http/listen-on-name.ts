import { lookup as lookUp } from "node:dns/promises";
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, createServer, isIP } from "node:net";
import { isLoopback } from "../access.ts";

type Lookup = (host: string) => Promise<{ address: string }[]>;
const everyAddress: Lookup = (host) => lookUp(host, { all: true });

/**
 * A server only listens on the first address of a name, and `localhost` often has two: clients that use the other one are
 * refused. So the server also accepts connections on its name's other loopback addresses, at the same port. Returns a function
 * that stops that.
 */
export async function listenOnName(server: Server, host: string, lookup = everyAddress): Promise<() => Promise<void>> {
  if (isIP(host) !== 0) return async () => {};
  const main = server.address() as AddressInfo;
  const addresses = await lookup(host).catch(() => []);
  const others = new Set(addresses.map(({ address }) => address).filter((address) => isLoopback(address)));
  others.delete(main.address);
  const listening = await Promise.all(
    [...others].map(async (address) => {
      // Half-open as HTTP requires; the accepting server enforces every limit.
      const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit("connection", socket));
      other.maxConnections = server.maxConnections;
      other.listen(main.port, address);
      try {
        await once(other, "listening");
        return [other];
      } catch (error) {
        // A machine without IPv6 may still have a name for its loopback address.
        if ((error as NodeJS.ErrnoException).code === "EADDRNOTAVAIL") return [];
        throw error;
      }
    }),
  );
  return async () => {
    for (const other of listening.flat()) other.close();
  };
}
