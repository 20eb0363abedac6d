/** Runs one piece of work at a time, in the order of arrival. Entering a free mutex takes no turn of the event loop. */
export class Mutex {
  #isLocked = false;
  readonly #waiting: (() => void)[] = [];

  get isFree(): boolean {
    return !this.#isLocked;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isLocked) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#isLocked = true;
    try {
      return await work();
    } finally {
      // The mutex stays locked when it is handed on, so that nobody who arrives now gets in between.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#isLocked = false;
    }
  }
}

/** A mutex for each key. A key costs memory only while somebody works on it or waits for it. */
export class KeyedMutex {
  readonly #mutexes = new Map<string, Mutex>();

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const mutex = this.#mutexes.get(key) ?? new Mutex();
    this.#mutexes.set(key, mutex);
    try {
      return await mutex.run(work);
    } finally {
      if (mutex.isFree && this.#mutexes.get(key) === mutex) this.#mutexes.delete(key);
    }
  }
}
