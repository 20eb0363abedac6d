import { Emitter } from "./emitter.ts";

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Notifies listeners that there may be work: when some arrives, and when a retry is due. */
export class WorkSignal {
  readonly #emitter = new Emitter();
  readonly #nextRetryAt: () => number | null;
  #timer: NodeJS.Timeout | undefined;

  constructor(nextRetryAt: () => number | null) {
    this.#nextRetryAt = nextRetryAt;
  }

  listen(listener: () => void): () => void {
    return this.#emitter.listen(listener);
  }

  emit(): void {
    this.#emitter.emit();
    this.wait();
  }

  /** Sets the timer for the next retry, if there is one. */
  wait(): void {
    clearTimeout(this.#timer);
    const at = this.#nextRetryAt();
    if (at !== null)
      this.#timer = setTimeout(() => this.emit(), Math.max(1, Math.min(at - Date.now(), LONGEST_TIMER_MS)));
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#emitter.clear();
  }
}
