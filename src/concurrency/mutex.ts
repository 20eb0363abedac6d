import { Semaphore } from "./semaphore.ts";

/** Runs one piece of work at a time, in the order of arrival. */
export class Mutex extends Semaphore {
  constructor() {
    super(1);
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
