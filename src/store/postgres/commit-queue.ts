import type { CommitOutcome } from "../store.ts";
import type { EncodedBatch } from "./encoded-batch.ts";
import type { GroupWriter, Written } from "./group-writer.ts";
import { unanswered } from "./store-errors.ts";

type Waiting = {
  batch: EncodedBatch;
  committed: (numbers: Written["numbers"]) => void;
  resolve: (outcome: CommitOutcome) => void;
  reject: (error: unknown) => void;
  since: number;
};

const MOST_BATCHES = 64;
const MOST_CHARACTERS = 8 * 1024 * 1024;
/** A commit that was not begun for so many milliseconds, because the server does not answer, is given back. */
const LONGEST_WAIT_MS = 5000;

/** Group commit: what arrives while a write is under way forms the next one. A lone commit waits for nothing. */
export class CommitQueue {
  readonly #writer: GroupWriter;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;

  constructor(writer: GroupWriter) {
    this.#writer = writer;
  }

  /** `committed` runs once the batch is on disk, in the order of the commits and before the answer is given. */
  commit(batch: EncodedBatch, committed: Waiting["committed"]): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ batch, committed, resolve, reject, since: performance.now() });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Resolves when all that was given so far is answered. */
  async drained(): Promise<void> {
    while (this.#writing) await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // Commits of the same turn of the event loop go together.
    await new Promise(setImmediate);
    const timer = setInterval(() => this.#giveBack(), LONGEST_WAIT_MS / 5);
    while (this.#waiting.length > 0) {
      const group = this.#nextGroup();
      try {
        const outcomes = await this.#writer.write(group.map(({ batch }) => batch));
        for (const [index, { committed, resolve, reject }] of group.entries()) {
          const written = outcomes[index] as (typeof outcomes)[number];
          if ("error" in written) reject(written.error);
          else {
            if (written.outcome.kind === "committed") committed(written.numbers);
            resolve(written.outcome);
          }
        }
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    clearInterval(timer);
    this.#writing = undefined;
  }

  #giveBack(): void {
    const tooOld = performance.now() - LONGEST_WAIT_MS;
    const late = this.#waiting.filter(({ since }) => since < tooOld);
    this.#waiting = this.#waiting.filter(({ since }) => since >= tooOld);
    for (const { reject } of late) reject(unanswered());
  }

  /** What waits, up to a size. What writes the same rows as another of the group waits for the next one, and so do those after it that do. */
  #nextGroup(): Waiting[] {
    const group: Waiting[] = [];
    const later: Waiting[] = [];
    const taken = new Set<string>();
    let characters = 0;
    for (const waiting of this.#waiting) {
      const { keys, characters: size } = waiting.batch;
      const isFull = group.length > 0 && (group.length >= MOST_BATCHES || characters + size > MOST_CHARACTERS);
      const collides = keys.some((key) => taken.has(key));
      for (const key of keys) taken.add(key);
      if (isFull || collides) later.push(waiting);
      else {
        group.push(waiting);
        characters += size;
      }
    }
    this.#waiting = later;
    return group;
  }
}
