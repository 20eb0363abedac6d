import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

/** How a connection breaks at its next chunk of data. */
export type Cut =
  /** Half of the request arrives, and nothing more. */
  | "mid_request"
  /** The whole request arrives, and the response is lost. */
  | "lost_answer"
  /** Half of the response arrives. */
  | "mid_answer";

type Way = "to_server" | "to_client";
const WAY_OF_CUT: Readonly<Record<Cut, Way>> = {
  mid_request: "to_server",
  lost_answer: "to_client",
  mid_answer: "to_client",
};

/** Sits between processes and their database, and breaks their connections as a bad network does. */
export class FaultyProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;
  #refuses = false;
  #delay_ms = 0;
  #nextCuts: Cut[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  /** The proxy, and the URL of the database through it. */
  static async before(url: string, own_port = 0): Promise<{ proxy: FaultyProxy; url: string }> {
    const target = new URL(url);
    const { port, hostname } = target;
    const server = createServer();
    const proxy = new FaultyProxy(server);
    server.on("connection", (socket) => {
      socket.on("error", () => {});
      if (proxy.#refuses) socket.destroy();
      else proxy.#join(socket, connect(Number(port), hostname));
    });
    server.listen(own_port, "127.0.0.1");
    await once(server, "listening");
    target.port = String((server.address() as { port: number }).port);
    return { proxy, url: target.href };
  }

  /** Forwards nothing; connections are still accepted and stay open. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  mend(): void {
    this.#isCut = false;
    this.#refuses = false;
    this.#delay_ms = 0;
    this.#nextCuts = [];
    for (const socket of this.#sockets) socket.resume();
  }

  /** Closes every connection, like a server that goes down. */
  drop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Accepts connections and closes them at once, like a load balancer without a backend. */
  refuse(): void {
    this.#refuses = true;
    this.drop();
  }

  /** Adds this many milliseconds in each direction. */
  delay(ms: number): void {
    this.#delay_ms = ms;
  }

  /** The next connections that send something break while they send it. */
  cutNext(...cuts: Cut[]): void {
    this.#nextCuts.push(...cuts);
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
    for (const [from, to, way] of [
      [near, far, "to_server"],
      [far, near, "to_client"],
    ] as const) {
      this.#sockets.add(from);
      const late = new LateWrites();
      from.on("data", (chunk) => this.#pass(chunk, from, to, way, late));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#isCut) from.pause();
    }
  }

  #pass(chunk: Buffer, from: Socket, to: Socket, way: Way, late: LateWrites): void {
    const at = this.#nextCuts.findIndex((cut) => WAY_OF_CUT[cut] === way);
    const [cut] = at < 0 ? [] : this.#nextCuts.splice(at, 1);
    const passed = cut === undefined ? chunk : chunk.subarray(0, cut === "lost_answer" ? 0 : chunk.length / 2);
    const write = (): void => {
      if (passed.length > 0) to.write(passed);
      if (cut === undefined) return;
      // Forwarded data arrives before the end.
      to.end();
      from.destroy();
    };
    late.add(this.#delay_ms, write);
  }
}

/**
 * Delayed writes in one direction. They stay in order even if the delay changes: a bad network is slow, but never reorders a
 * stream.
 */
class LateWrites {
  #last = Promise.resolve();
  #waiting = 0;

  add(delay_ms: number, write: () => void): void {
    if (delay_ms === 0 && this.#waiting === 0) return write();
    this.#waiting += 1;
    const due = wait(delay_ms);
    this.#last = this.#last.then(async () => {
      await due;
      this.#waiting -= 1;
      write();
    });
  }
}
