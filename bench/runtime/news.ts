const STALLED_AFTER_MS = 60_000;

/** Waits for conditions that events make true. */
export class News {
  readonly #waiting = new Set<() => void>();

  /** Lets every waiter check its condition again. */
  tell(): void {
    for (const look of this.#waiting) look();
  }

  /** Fails after `limit_ms`, so that a stalled runtime does not hang the bench. */
  async until(what: string, isTrue: () => boolean, limit_ms = STALLED_AFTER_MS): Promise<void> {
    if (isTrue()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = (): void => void (isTrue() && resolve());
    const stalled = new Error(`waited ${limit_ms / 1_000} s in vain: ${what}`);
    const timer = setTimeout(() => reject(stalled), limit_ms);
    this.#waiting.add(look);
    try {
      await promise;
    } finally {
      this.#waiting.delete(look);
      clearTimeout(timer);
    }
  }
}
