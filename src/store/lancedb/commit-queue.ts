import type { CommitOutcome } from "../store.ts";
import { unpackError, type WireBatch, type WireOutcome } from "./wire.ts";

type Waiting = {
  batch: WireBatch;
  committed: () => void;
  resolve: (outcome: CommitOutcome) => void;
  reject: (error: unknown) => void;
};

/** Group commit: what arrives while a write is under way forms the next one. A lone commit waits for nothing. */
export class CommitQueue {
  readonly #write: (batches: WireBatch[]) => Promise<WireOutcome[]>;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;

  constructor(write: (batches: WireBatch[]) => Promise<WireOutcome[]>) {
    this.#write = write;
  }

  /** `committed` runs once the batch is on disk, in the order of the commits and before the answer is given. */
  commit(batch: WireBatch, committed: () => void): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ batch, committed, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Resolves when all that was given so far is answered. */
  async drained(): Promise<void> {
    while (this.#writing) await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // Commits of the same tick go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        const outcomes = await this.#write(group.map(({ batch }) => batch));
        for (const [index, waiting] of group.entries()) settle(waiting, outcomes[index] as WireOutcome);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#writing = undefined;
  }
}

function settle({ committed, resolve, reject }: Waiting, outcome: WireOutcome): void {
  if (outcome.kind === "failed") return reject(unpackError(outcome.error));
  if (outcome.kind === "committed") committed();
  resolve(outcome);
}
