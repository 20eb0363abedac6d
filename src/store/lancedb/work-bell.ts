/** Tells listeners that there may be work: at once when some arrives, and when a retry falls due. */
export class WorkBell {
  readonly #listeners = new Set<() => void>();
  readonly #nextRetryAt: () => number | null;
  #timer: NodeJS.Timeout | undefined;

  constructor(nextRetryAt: () => number | null) {
    this.#nextRetryAt = nextRetryAt;
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ring(): void {
    for (const listener of this.#listeners) listener();
    this.wait();
  }

  /** Sets the timer for the next retry, if one waits. */
  wait(): void {
    clearTimeout(this.#timer);
    const at = this.#nextRetryAt();
    if (at !== null)
      this.#timer = setTimeout(() => this.ring(), Math.max(1, Math.min(at - Date.now(), LONGEST_TIMER_MS)));
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#listeners.clear();
  }
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;
