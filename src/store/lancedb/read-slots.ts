/** Reads that the thread has in memory at once: each may bring as much as `page-size.ts` lets it. */
const MOST_READS = 8;

/** Lets so many reads run at a time, first come first served. */
export class ReadSlots {
  #free = MOST_READS;
  readonly #waiting: (() => void)[] = [];

  async run<Result>(read: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await read();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
