import type { CommitOutcome } from "../store.ts";
import { measure, unpackError, type WireBatch, type WireOutcome, type WireRows } from "./wire.ts";

type Waiting = {
  batch: WireBatch;
  characters: number;
  committed: () => void;
  resolve: (outcome: CommitOutcome) => void;
  reject: (error: unknown) => void;
};

/** Commits for which a second group is worth a sync of its own. */
const WORTH_A_SYNC = 16;
/** Characters of a group, so that the journal's thread never has more of them in memory; one batch may be more. */
const GROUP_CHARACTERS = 32 << 20;

/**
 * Group commit: what arrives while a group is being written forms the next one. A lone commit waits for nothing. Many
 * commits go as two groups, so that the journal writes one while the answers to the other are taken in.
 */
export class CommitQueue {
  readonly #write: (batches: WireBatch[]) => Promise<WireOutcome[]>;
  #waiting: Waiting[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #nextPosition = 1;

  constructor(write: (batches: WireBatch[]) => Promise<WireOutcome[]>) {
    this.#write = write;
  }

  /** Rows are placed after this one. A batch that is not written leaves its places empty. */
  continueAfter(position: number): void {
    this.#nextPosition = position + 1;
  }

  /** `committed` runs once the batch is on disk, in the order of the commits and before the answer is given. */
  commit(rows: WireRows, committed: () => void): Promise<CommitOutcome> {
    const size = measure(rows);
    const batch = { ...rows, first: this.#nextPosition };
    this.#nextPosition += size.rows;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ batch, characters: size.characters, committed, resolve, reject });
      // Commits of the same tick go together.
      if (this.#waiting.length === 1) queueMicrotask(() => this.#send());
    });
  }

  /** Resolves when all that was given so far is answered. */
  async drained(): Promise<void> {
    while (this.#waiting.length > 0 || this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #send(): void {
    while (this.#isWorthSending()) {
      const isSplit = this.#underWay.size === 0 && this.#waiting.length >= 2 * WORTH_A_SYNC;
      const group = this.#take(isSplit ? this.#waiting.length / 2 : this.#waiting.length);
      const writing = this.#writeGroup(group).finally(() => {
        this.#underWay.delete(writing);
        this.#send();
      });
      this.#underWay.add(writing);
    }
  }

  #take(most: number): Waiting[] {
    let count = 0;
    for (let characters = 0; count < most && characters <= GROUP_CHARACTERS; count += 1)
      characters += this.#waiting[count]?.characters ?? 0;
    return this.#waiting.splice(0, count);
  }

  #isWorthSending(): boolean {
    const count = this.#waiting.length;
    return count > 0 && (this.#underWay.size === 0 || (this.#underWay.size === 1 && count >= WORTH_A_SYNC));
  }

  async #writeGroup(group: Waiting[]): Promise<void> {
    try {
      const outcomes = await this.#write(group.map(({ batch }) => batch));
      for (const [index, waiting] of group.entries()) settle(waiting, outcomes[index] as WireOutcome);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}

function settle({ committed, resolve, reject }: Waiting, outcome: WireOutcome): void {
  if (outcome.kind === "failed") return reject(unpackError(outcome.error));
  if (outcome.kind === "committed") committed();
  resolve(outcome);
}
