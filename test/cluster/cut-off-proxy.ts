import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** Stands between a process and its database, and can keep everything to itself for a while, as a broken network does. */
export class CutOffProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** The proxy, and the URL with which the database is reached through it. */
  static async before(url: string): Promise<{ proxy: CutOffProxy; url: string }> {
    const target = new URL(url);
    const { port, hostname } = target;
    const server = createServer();
    const proxy = new CutOffProxy(server);
    server.on("connection", (socket) => proxy.#join(socket, connect(Number(port), hostname)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    target.port = String((server.address() as { port: number }).port);
    return { proxy, url: target.href };
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  mend(): void {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Ends every connection, as a server does that goes down. */
  drop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  get isUsed(): boolean {
    return this.#sockets.size > 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.drop();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(near: Socket, far: Socket): void {
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.on("data", (chunk) => to.write(chunk));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#isCut) from.pause();
    }
  }
}
