type Line = { begun: Promise<void>; underWay: number };

/** Lets requests look something up side by side, and begin their work one after the other in the order they arrived. */
export class Arrivals {
  readonly #lines = new Map<string, Line>();

  /**
   * Work that comes while nothing of its key is under way may ask to be `alone`: then what comes after it begins when it
   * ended. It is told whether it is.
   */
  async inOrder<Found, Result>(
    key: string,
    wish: "alone" | "side by side",
    lookUp: Promise<Found>,
    work: (found: Found, isAlone: boolean) => Promise<Result>,
  ): Promise<Result> {
    // It may fail before its turn.
    lookUp.catch(() => {});
    const line = this.#lines.get(key) ?? { begun: Promise.resolve(), underWay: 0 };
    this.#lines.set(key, line);
    const isAlone = wish === "alone" && line.underWay === 0;
    const before = line.begun;
    const begun = (async () => {
      await before;
      const found = await lookUp;
      // Not awaited here: the next one may begin.
      return { result: work(found, isAlone) };
    })();
    const result = begun.then((one) => one.result);
    line.begun = (isAlone ? result : begun).then(nothing, nothing);
    line.underWay += 1;
    try {
      return await result;
    } finally {
      line.underWay -= 1;
      if (line.underWay === 0) this.#lines.delete(key);
    }
  }
}

const nothing = (): void => {};
