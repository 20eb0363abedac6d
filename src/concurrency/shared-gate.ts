/** Lets many pieces of work through at once, or one alone. Who wants to be alone goes before those who come later. */
export class SharedGate {
  #sharing = 0;
  #alone: Promise<void> | null = null;
  #left: (() => void) | null = null;

  async shared<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#alone) await this.#alone;
    this.#sharing += 1;
    try {
      return await work();
    } finally {
      this.#sharing -= 1;
      if (this.#sharing === 0) this.#left?.();
    }
  }

  async alone<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#alone) await this.#alone;
    const over = Promise.withResolvers<void>();
    this.#alone = over.promise;
    try {
      if (this.#sharing > 0)
        await new Promise<void>((resolve) => {
          this.#left = resolve;
        });
      return await work();
    } finally {
      this.#left = null;
      this.#alone = null;
      over.resolve();
    }
  }
}
