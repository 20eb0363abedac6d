import { type Summary, summarize } from "../stats.ts";
import type { Answer, KeptConnection } from "./kept-connection.ts";
import type { ConnectionCount, RequestKind } from "./request-kinds.ts";

/** The results of some connections to one server with one kind of request, over all blocks. */
export class RequestLoad {
  readonly #kind: RequestKind;
  readonly #connections: readonly KeptConnection[];
  readonly #block: number;
  #latencies: number[] = [];
  #seconds = 0;

  constructor(kind: RequestKind, connections: readonly KeptConnection[], count: ConnectionCount) {
    this.#kind = kind;
    this.#connections = connections.slice(0, count);
    this.#block = kind.block[count];
  }

  get requests(): number {
    return this.#latencies.length;
  }

  get per_second(): number {
    return this.requests / this.#seconds;
  }

  latency(): Summary {
    return summarize(this.#latencies);
  }

  forget(): void {
    this.#latencies = [];
    this.#seconds = 0;
  }

  /** Each connection sends the next request as soon as it has the response to the last one. */
  async runBlock(): Promise<void> {
    const { name } = this.#kind;
    let left = this.#block;
    let last: Answer | undefined;
    const begun = performance.now();
    await Promise.all(
      this.#connections.map(async (connection) => {
        while (left-- > 0) {
          const request = this.#kind.next();
          const sent = performance.now();
          last = await connection.send(request);
          this.#latencies.push(performance.now() - sent);
          if (last.status >= 300) throw new Error(`${name} was answered ${last.status}: ${last.body.toString()}`);
        }
      }),
    );
    this.#seconds += (performance.now() - begun) / 1_000;
    if (!last || !this.#kind.isRight(last)) throw new Error(`${name} was answered ${last?.body.toString()}`);
  }
}

/** The same requests to both servers. */
export type Pair = {
  kind: RequestKind;
  count: ConnectionCount;
  everstep: RequestLoad;
  bare: RequestLoad;
  /** Everstep's CPU time in seconds, including work that follows its responses. */
  processor: number;
  /** Milliseconds from the last response of a block to the end of the last action, for each block. */
  settled: number[];
};
