import type { CommitOutcome } from "../store.ts";
import type { EncodedBatch } from "./encoded-batch.ts";
import { GroupWriter, type Told } from "./group-writer.ts";
import { unanswered } from "./store-errors.ts";

type Waiting = {
  batch: EncodedBatch;
  committed: (told: Told) => void;
  resolve: (outcome: CommitOutcome) => void;
  reject: (error: unknown) => void;
  since: number;
};
type Group = { kind: EncodedBatch["kind"]; size: number; scopes: ReadonlySet<string>; written: Promise<void> };

/** One group is written while the answers to the other are taken in. */
const WRITERS = 2;
const MOST_BATCHES = 64;
const MOST_CHARACTERS = 8 * 1024 * 1024;
/** Commits for which a further group is worth a sync of its own. */
const WORTH_A_SYNC = 16;
/** Where a group has no more than these, there is little to do and nothing should wait. */
const FEW = 8;
/** A commit that was not begun for so many milliseconds, because the server does not answer, is given back. */
const LONGEST_WAIT_MS = 5000;

/**
 * Group commit: what arrives while a group is being written forms the next one. A lone commit waits for nothing. Many
 * commits go as several groups, so that the server writes one while the answers to another are taken in.
 *
 * Q1  A group has batches of one kind, the kind of the one that waits longest.
 * Q2  What concerns the same session, conversation or agent is written in the order it was given, and never by two groups
 *     at once.
 */
export class CommitQueue {
  readonly #writers: readonly GroupWriter[];
  readonly #idle: GroupWriter[];
  readonly #underWay = new Set<Group>();
  #waiting: Waiting[] = [];
  #isScheduled = false;
  #patience: NodeJS.Timeout | undefined;

  constructor(url: string, node_no: number) {
    this.#writers = Array.from({ length: WRITERS }, (_, writer_no) => new GroupWriter(url, node_no, writer_no));
    this.#idle = [...this.#writers];
  }

  async start(): Promise<void> {
    await Promise.all(this.#writers.map((writer) => writer.register()));
    // What does not come through here comes to light with the first group.
    for (const writer of this.#writers) void writer.rehearse().catch(() => {});
  }

  /** The process stops: what the server leaves in doubt is soon given up. */
  prepareToStop(): void {
    for (const writer of this.#writers) writer.prepareToStop();
  }

  async close(): Promise<void> {
    await Promise.all(this.#writers.map((writer) => writer.close()));
  }

  /** `committed` runs once the batch is on disk and before the answer is given. */
  commit(batch: EncodedBatch, committed: Waiting["committed"]): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ batch, committed, resolve, reject, since: performance.now() });
      this.#patience ??= setInterval(() => this.#giveBack(), LONGEST_WAIT_MS / 5);
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      // Commits of the same turn of the event loop go together.
      setImmediate(() => {
        this.#isScheduled = false;
        this.#send();
      });
    });
  }

  /** Resolves when all that was given so far is answered. */
  async drained(): Promise<void> {
    while (this.#waiting.length > 0 || this.#underWay.size > 0)
      await (this.#underWay.size > 0
        ? Promise.race([...this.#underWay].map(({ written }) => written))
        : new Promise(setImmediate));
  }

  #send(): void {
    while (this.#isWorthSending()) {
      const group = this.#nextGroup();
      if (group.length === 0) break;
      const writer = this.#idle.pop() as GroupWriter;
      const underWay: Group = {
        kind: (group[0] as Waiting).batch.kind,
        size: group.length,
        scopes: new Set(group.flatMap(({ batch }) => batch.scopes)),
        written: write(writer, group).finally(() => {
          this.#underWay.delete(underWay);
          this.#idle.push(writer);
          this.#send();
        }),
      };
      this.#underWay.add(underWay);
    }
    if (this.#waiting.length > 0 || this.#underWay.size > 0) return;
    clearInterval(this.#patience);
    this.#patience = undefined;
  }

  /** Beside a small group, or one of another kind, at once; beside a large one only what is large too. */
  #isWorthSending(): boolean {
    const [first] = this.#waiting;
    if (!first || this.#idle.length === 0) return false;
    return [...this.#underWay].every(
      ({ kind, size }) =>
        size <= FEW || first.batch.kind !== kind || this.#waiting.length >= Math.max(WORTH_A_SYNC, size / 2),
    );
  }

  #giveBack(): void {
    const tooOld = performance.now() - LONGEST_WAIT_MS;
    const late = this.#waiting.filter(({ since }) => since < tooOld);
    this.#waiting = this.#waiting.filter(({ since }) => since >= tooOld);
    for (const { reject } of late) reject(unanswered());
  }

  /**
   * What waits, up to a size. What writes the same rows as another of the group, is of another kind (Q1), or concerns what is
   * under way (Q2), waits for a later one, and so do those after it that do.
   */
  #nextGroup(): Waiting[] {
    const group: Waiting[] = [];
    const later: Waiting[] = [];
    const taken = new Set<string>();
    const blocked = new Set([...this.#underWay].flatMap(({ scopes }) => [...scopes]));
    const most = Math.min(MOST_BATCHES, this.#fairShare());
    let characters = 0;
    for (const waiting of this.#waiting) {
      const { kind, keys, scopes, characters: size } = waiting.batch;
      const [first] = group;
      const isFull = first && (group.length >= most || characters + size > MOST_CHARACTERS);
      const isOther = first && first.batch.kind !== kind;
      if (isFull || isOther || keys.some((key) => taken.has(key)) || scopes.some((scope) => blocked.has(scope))) {
        later.push(waiting);
        for (const scope of scopes) blocked.add(scope);
      } else {
        group.push(waiting);
        for (const key of keys) taken.add(key);
        characters += size;
      }
    }
    this.#waiting = later;
    return group;
  }

  /** Many commits are shared out among the writers where all are free. */
  #fairShare(): number {
    const count = this.#waiting.length;
    return this.#underWay.size === 0 && count >= WORTH_A_SYNC * WRITERS ? Math.ceil(count / WRITERS) : count;
  }
}

async function write(writer: GroupWriter, group: readonly Waiting[]): Promise<void> {
  try {
    const outcomes = await writer.write(group.map(({ batch }) => batch));
    for (const [index, { committed, resolve, reject }] of group.entries()) {
      const written = outcomes[index] as (typeof outcomes)[number];
      if ("error" in written) reject(written.error);
      else {
        if (written.outcome.kind === "committed") committed(written.told);
        resolve(written.outcome);
      }
    }
  } catch (error) {
    for (const { reject } of group) reject(error);
  }
}
