import { Mutex } from "../concurrency/mutex.ts";

type Line = { mutex: Mutex; inProgress: number };

/** Lets requests do their lookups in parallel, and start their work one by one in the order they arrived. */
export class OrderedAdmission {
  readonly #lines = new Map<string, Line>();

  /**
   * Work that arrives while its key is idle may be `exclusive`: whatever arrives later starts after it ends. `work` learns
   * whether it is exclusive.
   */
  async admit<Context, Result>(
    key: string,
    mode: "exclusive" | "shared",
    lookUp: Promise<Context>,
    work: (context: Context, isExclusive: boolean) => Promise<Result>,
  ): Promise<Result> {
    // Avoids an unhandled rejection: it may fail before it is awaited.
    lookUp.catch(() => {});
    const line = this.#lines.get(key) ?? { mutex: new Mutex(), inProgress: 0 };
    this.#lines.set(key, line);
    const isExclusive = mode === "exclusive" && line.inProgress === 0;
    line.inProgress += 1;
    try {
      const { result } = await line.mutex.run(async () => {
        const context = await lookUp;
        const running = work(context, isExclusive);
        // Shared work is not awaited here, so that the next one may start.
        if (isExclusive) await running.catch(() => {});
        return { result: running };
      });
      return await result;
    } finally {
      line.inProgress -= 1;
      if (line.inProgress === 0) this.#lines.delete(key);
    }
  }
}
