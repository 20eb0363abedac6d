import { Mutex } from "../concurrency/mutex.ts";

type Line = { mutex: Mutex; underWay: number };

/** Lets requests look something up side by side, and begin their work one after the other in the order they arrived. */
export class OrderedAdmission {
  readonly #lines = new Map<string, Line>();

  /**
   * Work that arrives while nothing of its key is under way may ask to be `exclusive`: then what arrives after it begins when it
   * has ended. `work` is told whether it is exclusive.
   */
  async admit<Context, Result>(
    key: string,
    mode: "exclusive" | "shared",
    lookUp: Promise<Context>,
    work: (context: Context, isExclusive: boolean) => Promise<Result>,
  ): Promise<Result> {
    // It may fail before anybody awaits it.
    lookUp.catch(() => {});
    const line = this.#lines.get(key) ?? { mutex: new Mutex(), underWay: 0 };
    this.#lines.set(key, line);
    const isExclusive = mode === "exclusive" && line.underWay === 0;
    line.underWay += 1;
    try {
      const { result } = await line.mutex.run(async () => {
        const context = await lookUp;
        const begun = work(context, isExclusive);
        // Shared work is not awaited here: the next one may begin.
        if (isExclusive) await begun.catch(() => {});
        return { result: begun };
      });
      return await result;
    } finally {
      line.underWay -= 1;
      if (line.underWay === 0) this.#lines.delete(key);
    }
  }
}
