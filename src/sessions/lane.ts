/** One at a time, in the order of arrival. Entering a free lane takes no turn of the event loop. */
export class Lane {
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  get isFree(): boolean {
    return !this.#busy;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#busy) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#busy = true;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#busy = false;
    }
  }
}
