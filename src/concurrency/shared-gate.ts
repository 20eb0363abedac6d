/** Lets many pieces of work through at once, or one alone. Who wants to be alone goes before those who come later. */
export class SharedGate {
  #sharing = 0;
  #exclusive: Promise<void> | null = null;
  #left: (() => void) | null = null;

  async shared<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#exclusive) await this.#exclusive;
    this.#sharing += 1;
    try {
      return await work();
    } finally {
      this.#sharing -= 1;
      if (this.#sharing === 0) this.#left?.();
    }
  }

  async exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#exclusive) await this.#exclusive;
    const over = Promise.withResolvers<void>();
    this.#exclusive = over.promise;
    try {
      if (this.#sharing > 0)
        await new Promise<void>((resolve) => {
          this.#left = resolve;
        });
      return await work();
    } finally {
      this.#left = null;
      this.#exclusive = null;
      over.resolve();
    }
  }
}
