import { setTimeout as wait } from "node:timers/promises";

/** Waits that grow with each failure in a row, up to a limit, each a little different. */
export class Backoff {
  readonly #first_ms: number;
  readonly #longest_ms: number;
  #next_ms: number;

  constructor(first_ms: number, longest_ms: number) {
    this.#first_ms = first_ms;
    this.#longest_ms = longest_ms;
    this.#next_ms = first_ms;
  }

  reset(): void {
    this.#next_ms = this.#first_ms;
  }

  async wait(signal: AbortSignal): Promise<void> {
    const ms = this.#next_ms * (0.75 + Math.random() / 2);
    this.#next_ms = Math.min(this.#longest_ms, this.#next_ms * 2);
    await pause(ms, signal);
  }
}

/** Ends early, and without an error, when the signal says so. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => {});
}
