/** Delays that double up to a limit, each a little different, so that many clients do not come back at once. */
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

  /** The next delay in milliseconds. */
  next(): number {
    const ms = this.#next_ms * (0.5 + Math.random() / 2);
    this.#next_ms = Math.min(this.#next_ms * 2, this.#longest_ms);
    return ms;
  }

  /** Waits for the next delay; see `sleep`. */
  async wait(signal?: AbortSignal): Promise<void> {
    await sleep(this.next(), signal);
  }
}

/** Waits. Ends early, without an error, when the signal aborts. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
