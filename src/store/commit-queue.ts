import type { CommitOutcome } from "./store.ts";
import { unanswered } from "./store-errors.ts";

/** What the queue needs to know of a batch. Batches of one group have one kind, and no two of them write the same key. */
export type QueuedBatch = {
  kind: string;
  /** The keys that it writes. */
  keys: readonly string[];
  /** The sessions, conversations and agents that it concerns. Batches with a common one are written one after the other. */
  scopes: readonly string[];
  characters: number;
};
export type Written<Feedback> = { outcome: CommitOutcome; feedback: Feedback } | { error: unknown };
export type GroupWriter<Batch, Feedback> = { write(batches: Batch[]): Promise<Written<Feedback>[]> };

export type CommitQueueOptions<Batch, Feedback> = {
  /** Each writes one group at a time. */
  writers: readonly GroupWriter<Batch, Feedback>[];
  /** Limits of one group; a larger batch goes alone. */
  most: { batches: number; characters: number };
  /** Whether this many waiting commits are worth a second group beside one of that size. */
  isWorthGroup: (waiting: number, under_way: number) => boolean;
  /** Defers sending, so that commits of the same turn go together. */
  schedule: (send: () => void) => void;
  /** Whether a commit that joins others may start a group; otherwise it waits until a group has been written. */
  isEager: boolean;
  /** Milliseconds after which a commit that was not sent, because the server does not answer, fails. */
  longest_wait_ms?: number;
};

type Waiting<Batch, Feedback> = {
  batch: Batch;
  committed: (feedback: Feedback) => void;
  resolve: (outcome: CommitOutcome) => void;
  reject: (error: unknown) => void;
  since: number;
  /** Counts up with the commits. */
  number: number;
};
type Group = {
  kind: string;
  size: number;
  scopes: ReadonlySet<string>;
  /** Of its commits, the lowest number. */
  first: number;
  written: Promise<void>;
};

/** How many commits are worth a sync of their own. */
export const WORTH_A_SYNC = 16;

/**
 * Group commit: commits that arrive while a group is being written form the next one. A lone commit does not wait. Many commits are
 * split into several groups, so that one is written while the answers to another are processed.
 *
 * COMMIT-1  A group has batches of one kind, the kind of the one that waits longest.
 * COMMIT-2  Batches that concern the same session, conversation or agent are written in the order of their commits, and never by
 *          two groups at once.
 */
export class CommitQueue<Batch extends QueuedBatch, Feedback> {
  readonly #options: CommitQueueOptions<Batch, Feedback>;
  readonly #idle: GroupWriter<Batch, Feedback>[];
  readonly #underWay = new Set<Group>();
  #waiting: Waiting<Batch, Feedback>[] = [];
  #lastNumber = 0;
  #isScheduled = false;
  #expiry: NodeJS.Timeout | undefined;

  constructor(options: CommitQueueOptions<Batch, Feedback>) {
    this.#options = options;
    this.#idle = [...options.writers];
  }

  /** `committed` is called once the batch is on disk, in the order of the commits and before the promise resolves. */
  commit(batch: Batch, committed: (feedback: Feedback) => void): Promise<CommitOutcome> {
    const { schedule, isEager, longest_wait_ms } = this.#options;
    return new Promise((resolve, reject) => {
      const number = ++this.#lastNumber;
      this.#waiting.push({ batch, committed, resolve, reject, since: performance.now(), number });
      if (longest_wait_ms !== undefined)
        this.#expiry ??= setInterval(() => this.#expire(longest_wait_ms), longest_wait_ms / 5);
      if (this.#isScheduled || (!isEager && this.#waiting.length > 1)) return;
      this.#isScheduled = true;
      schedule(() => {
        this.#isScheduled = false;
        this.#send();
      });
    });
  }

  /** Resolves once all commits so far are answered; later ones may keep the queue busy without end. */
  async drained(): Promise<void> {
    const last = this.#lastNumber;
    const isOpen = (): boolean =>
      this.#waiting.some(({ number }) => number <= last) || [...this.#underWay].some(({ first }) => first <= last);
    while (isOpen())
      await (this.#underWay.size > 0
        ? Promise.race([...this.#underWay].map(({ written }) => written))
        : new Promise(setImmediate));
  }

  #send(): void {
    while (this.#isWorthSending()) {
      const group = this.#nextGroup();
      if (group.length === 0) break;
      const writer = this.#idle.pop() as GroupWriter<Batch, Feedback>;
      const underWay: Group = {
        kind: (group[0] as Waiting<Batch, Feedback>).batch.kind,
        size: group.length,
        scopes: new Set(group.flatMap(({ batch }) => batch.scopes)),
        first: Math.min(...group.map(({ number }) => number)),
        written: write(writer, group).finally(() => {
          this.#underWay.delete(underWay);
          this.#idle.push(writer);
          this.#send();
        }),
      };
      this.#underWay.add(underWay);
    }
    if (this.#waiting.length > 0 || this.#underWay.size > 0) return;
    clearInterval(this.#expiry);
    this.#expiry = undefined;
  }

  /** A group of another kind that is under way is no reason to wait. */
  #isWorthSending(): boolean {
    const [first] = this.#waiting;
    if (!first || this.#idle.length === 0) return false;
    return [...this.#underWay].every(
      ({ kind, size }) => first.batch.kind !== kind || this.#options.isWorthGroup(this.#waiting.length, size),
    );
  }

  #expire(longest_wait_ms: number): void {
    const tooOld = performance.now() - longest_wait_ms;
    const expired = this.#waiting.filter(({ since }) => since < tooOld);
    this.#waiting = this.#waiting.filter(({ since }) => since >= tooOld);
    for (const { reject } of expired) reject(unanswered());
  }

  /**
   * Takes waiting batches up to the limits. A batch that writes a key which the group already has, is of another kind (COMMIT-1), or
   * shares a scope with a group under way (COMMIT-2) stays for a later group, and so do later batches that share a scope with it.
   */
  #nextGroup(): Waiting<Batch, Feedback>[] {
    const { most } = this.#options;
    const group: Waiting<Batch, Feedback>[] = [];
    const later: Waiting<Batch, Feedback>[] = [];
    const taken = new Set<string>();
    const blocked = new Set([...this.#underWay].flatMap(({ scopes }) => [...scopes]));
    const most_batches = Math.min(most.batches, this.#fairShare());
    let characters = 0;
    for (const waiting of this.#waiting) {
      const { kind, keys, scopes, characters: size } = waiting.batch;
      const [first] = group;
      const isFull = first && (group.length >= most_batches || characters + size > most.characters);
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

  /** If all writers are free, many commits are split evenly among them. */
  #fairShare(): number {
    const count = this.#waiting.length;
    const writers = this.#options.writers.length;
    return this.#underWay.size === 0 && count >= WORTH_A_SYNC * writers ? Math.ceil(count / writers) : count;
  }
}

async function write<Batch, Feedback>(
  writer: GroupWriter<Batch, Feedback>,
  group: readonly Waiting<Batch, Feedback>[],
): Promise<void> {
  try {
    const answers = await writer.write(group.map(({ batch }) => batch));
    for (const [index, { committed, resolve, reject }] of group.entries()) {
      const answer = answers[index] as (typeof answers)[number];
      if ("error" in answer) reject(answer.error);
      else {
        if (answer.outcome.kind === "committed") committed(answer.feedback);
        resolve(answer.outcome);
      }
    }
  } catch (error) {
    for (const { reject } of group) reject(error);
  }
}
