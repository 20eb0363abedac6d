import { askedInState, questionOf } from "../../domain/question.ts";
import { isLive, type Session } from "../../domain/session.ts";
import { OwnedSessions, type SessionEntry } from "../owned-sessions.ts";
import type { Chain } from "../state-delta.ts";
import type { OwnedSession } from "../store.ts";

export type ReadSession = { session: Session; chain: Chain | null; error_rows: number };

/** Every live session, with its owner if it has one. Nobody else writes the folder, so memory is what counts. */
export class LiveSessions extends OwnedSessions {
  /** Live sessions without an owner. */
  readonly #free = new Set<string>();
  /** The same in order, where it was asked for since one was added; those that were claimed since are still in it. */
  #oldestLast: string[] | null = null;
  /** Reads of sessions that are not in memory, with whether one ended here since its read began. */
  readonly #reads = new Set<{ session_id: string; isOutdated: boolean }>();
  /** Sessions that were loaded asking something which their rows do not tell. */
  readonly #foundAsking = new Set<string>();
  /** Never the same twice, so that an owner of long ago cannot pass for the one of today. */
  #lastEpoch = 1;

  load({ session, chain, error_rows }: ReadSession, after_crash = false): void {
    const unowned = { worker: null, epoch: 0, revision: 0, isBeingWritten: false };
    const found = asFound(session);
    if (found.question !== session.question) this.#foundAsking.add(session.session_id);
    this.entries.set(session.session_id, { session: found, chain, error_rows, after_crash, ...unowned });
    this.wakes.changed(found);
    if (isLive(session.status)) this.#addFree(session.session_id);
  }

  /**
   * Takes a session that is not in memory as `read` finds it. One that was taken up and ended again meanwhile is read once
   * more: a write made from what it was before would be lost (P3).
   */
  async loadResting(session_id: string, read: () => Promise<ReadSession | undefined>): Promise<void> {
    const reading = { session_id, isOutdated: false };
    this.#reads.add(reading);
    try {
      while (!this.entries.has(session_id)) {
        reading.isOutdated = false;
        const loaded = await read();
        if (!loaded) return;
        if (!reading.isOutdated && !this.entries.has(session_id)) this.load(loaded);
      }
    } finally {
      this.#reads.delete(reading);
    }
  }

  /** Sessions that ask something which their rows do not tell until they are written again. */
  foundAsking(): string[] {
    return [...this.#foundAsking].filter((id) => this.entries.get(id)?.session.question);
  }

  claimFree(worker: string, limit: number): OwnedSession[] {
    const claimed: OwnedSession[] = [];
    this.#oldestLast ??= this.#sortFree();
    while (claimed.length < limit && this.#oldestLast.length > 0) {
      const session_id = this.#oldestLast.pop() as string;
      // Others may have been claimed by their ids meanwhile.
      if (this.#free.has(session_id)) claimed.push(this.claim(session_id, worker) as OwnedSession);
    }
    return claimed;
  }

  #sortFree(): string[] {
    const createdAt = (id: string): string => (this.entries.get(id) as SessionEntry).session.created_at;
    const free = [...this.#free].map((id) => ({ id, created_at: createdAt(id) }));
    // Of those of the same time the one that was added first comes first.
    const oldestLast = free
      .toReversed()
      .sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0));
    return oldestLast.map(({ id }) => id);
  }

  #addFree(session_id: string): void {
    this.#free.add(session_id);
    this.#oldestLast = null;
  }

  /** Null where the session is not in memory or has another owner. */
  claim(session_id: string, worker: string): OwnedSession | null {
    const entry = this.entries.get(session_id);
    if (!entry || (entry.worker !== null && entry.worker !== worker)) return null;
    if (entry.worker === null) {
      entry.worker = worker;
      entry.epoch = ++this.#lastEpoch;
      this.#free.delete(session_id);
    }
    return this.get(session_id);
  }

  /** From now on the owner's commits are refused; `free` makes the session claimable. */
  fence(session_id: string, worker: string): boolean {
    const entry = this.entries.get(session_id);
    if (entry?.worker !== worker) return false;
    entry.epoch = ++this.#lastEpoch;
    return true;
  }

  free(session_id: string): void {
    const entry = this.entries.get(session_id);
    if (!entry) return;
    entry.worker = null;
    entry.after_crash = false;
    if (isLive(entry.session.status)) this.#addFree(session_id);
    else this.entries.delete(session_id);
  }

  /** P3: not while another write is under way. */
  protected override mayBeWritten({ isBeingWritten }: SessionEntry): boolean {
    return !isBeingWritten;
  }

  protected override created(entry: SessionEntry): void {
    this.entries.set(entry.session.session_id, entry);
    if (entry.worker === null) this.#addFree(entry.session.session_id);
  }

  protected override ended(session_id: string): void {
    this.entries.delete(session_id);
    this.#free.delete(session_id);
    for (const reading of this.#reads) reading.isOutdated ||= reading.session_id === session_id;
  }
}

/** Its step ended with the process that ran it. What it asked in its state before rows had a question is found there. */
function asFound(session: Session): Session {
  const { session_id, iteration, context, updated_at: asked_at } = session;
  const ask = session.question === null && isLive(session.status) ? askedInState(context) : null;
  if (!ask) return session.step_started_at === null ? session : { ...session, step_started_at: null };
  const of = { question_id: `${session_id}.${iteration}`.slice(-200), asked_at, iteration: Math.max(0, iteration) };
  return { ...session, question: questionOf(ask, of), step_started_at: null };
}
