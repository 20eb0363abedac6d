import { Semaphore } from "./semaphore.ts";

/** Runs one task at a time, in order of arrival. */
export class Mutex extends Semaphore {
  constructor() {
    super(1);
  }
}

/** A mutex per key. A key uses memory only while somebody holds its mutex or waits for it. */
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
