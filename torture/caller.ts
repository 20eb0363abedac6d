import type { JsonObject } from "../src/domain/json.ts";
import type { Random } from "../test/store/random.ts";

/** `lost`: sent, but its outcome is unknown. `unsent`: certainly not sent. */
export type Called = { kind: "answered"; status: number; text: string } | { kind: "lost" } | { kind: "unsent" };

/** A frozen process does not respond; a client gives up before it thaws. */
const PATIENCE_MS = 4000;

/** Sends requests to any of the servers. */
export class Caller {
  readonly #urls: readonly string[];
  readonly #random: Random;
  readonly counts = { answered: 0, lost: 0, unsent: 0, unavailable: 0 };

  constructor(urls: readonly string[], random: Random) {
    this.#urls = urls;
    this.#random = random;
  }

  async call(method: string, path: string, body?: JsonObject): Promise<Called> {
    const called = await this.#send(method, path, body);
    this.counts[called.kind] += 1;
    if (called.kind === "answered" && called.status === 503) this.counts.unavailable += 1;
    return called;
  }

  async #send(method: string, path: string, body?: JsonObject): Promise<Called> {
    try {
      const response = await fetch(this.#random.pick(this.#urls) + path, {
        method,
        signal: AbortSignal.timeout(PATIENCE_MS),
        ...(body ? { body: JSON.stringify(body), headers: { "content-type": "application/json" } } : {}),
      });
      return { kind: "answered", status: response.status, text: await response.text() };
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
      return { kind: code === "ECONNREFUSED" ? "unsent" : "lost" };
    }
  }
}
