/** Lets requests look something up side by side, and begin their work one after the other in the order they arrived. */
export class Arrivals {
  readonly #last = new Map<string, Promise<unknown>>();

  async inOrder<Found, Result>(
    key: string,
    lookUp: Promise<Found>,
    work: (found: Found) => Promise<Result>,
  ): Promise<Result> {
    const before = this.#last.get(key);
    const begun = (async () => {
      await before;
      const found = await lookUp;
      // Not awaited here: the next one may begin.
      return { result: work(found) };
    })();
    const settled = begun.catch(() => {});
    this.#last.set(key, settled);
    try {
      return await (await begun).result;
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    }
  }
}
