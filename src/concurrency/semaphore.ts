/** Runs a limited number of tasks at once, in order of arrival. Entering a free one takes no turn of the event loop. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  /** Whether work would start at once. */
  get isFree(): boolean {
    return this.#free > 0;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // A place that is passed on is never free in between, so that nobody can overtake the queue.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
