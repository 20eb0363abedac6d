import { type Action, byUrgencyThenArrival } from "../../domain/action.ts";
import { carriesGuidance } from "../../domain/action-type.ts";
import { type GuidanceAmount, jsonBytes } from "../../domain/guidance-amount.ts";
import type { JsonObject } from "../../domain/json.ts";
import { askedInState, questionOf } from "../../domain/question.ts";
import { isLive, type Session } from "../../domain/session.ts";
import { OwnedSessions, type SessionEntry } from "../owned-sessions.ts";
import type { Chain } from "../state-delta.ts";
import type { OwnedSession } from "../store.ts";

export type ReadSession = { session: Session; chain: Chain | null; error_rows: number };

/** Every live session with its owner, if any. Nobody else writes the folder, so memory is authoritative. */
export class LiveSessions extends OwnedSessions {
  /** Live sessions without an owner. */
  readonly #free = new Set<string>();
  /** The same, sorted, if requested since one was added; it may still contain sessions that were claimed since. */
  #oldestLast: string[] | null = null;
  /** Reads of sessions that are not in memory, and whether one ended here since its read began. */
  readonly #reads = new Set<{ session_id: string; isOutdated: boolean }>();
  /** Sessions loaded with a question that their rows do not have. */
  readonly #askingInState = new Set<string>();
  /** Never reused, so that a former owner cannot pass for the current one. */
  #lastEpoch = 1;

  load({ session, chain, error_rows }: ReadSession, after_crash = false): void {
    const unowned = { worker: null, epoch: 0, revision: 0, isBeingWritten: false };
    const current = withQuestion(session);
    if (current.question !== session.question) this.#askingInState.add(session.session_id);
    this.entries.set(session.session_id, { session: current, chain, error_rows, after_crash, ...unowned });
    this.wakes.changed(current);
    if (isLive(session.status)) this.#addFree(session.session_id);
  }

  /**
   * Loads a session that is not in memory. If it was claimed and ended again meanwhile, it is read once more: a write based on
   * the old row would be lost (P3).
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

  /** Sessions with a question that their rows do not have until they are written again. */
  askingInState(): string[] {
    return [...this.#askingInState].filter((id) => this.entries.get(id)?.session.question);
  }

  claimFree(worker: string, limit: number): OwnedSession[] {
    const claimed: OwnedSession[] = [];
    this.#oldestLast ??= this.#sortFree();
    while (claimed.length < limit && this.#oldestLast.length > 0) {
      const session_id = this.#oldestLast.pop() as string;
      // Others may have been claimed by id meanwhile.
      if (this.#free.has(session_id)) claimed.push(this.claim(session_id, worker) as OwnedSession);
    }
    return claimed;
  }

  #sortFree(): string[] {
    const createdAt = (id: string): string => (this.entries.get(id) as SessionEntry).session.created_at;
    const free = [...this.#free].map((id) => ({ id, created_at: createdAt(id) }));
    // Of equal times, the one added first comes first.
    const oldestLast = free
      .toReversed()
      .sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0));
    return oldestLast.map(({ id }) => id);
  }

  #addFree(session_id: string): void {
    this.#free.add(session_id);
    this.#oldestLast = null;
  }

  /** Null if the session is not in memory or has another owner. */
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

  /** The owner's commits are refused from now on; `free` makes the session claimable. */
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

  /** P3: not while another write is in progress. */
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

/** Its step ended with its process. A question it asked in its state before rows had questions is taken from there. */
function withQuestion(session: Session): Session {
  const { session_id, iteration, context, updated_at: asked_at } = session;
  const ask = session.question === null && isLive(session.status) ? askedInState(context) : null;
  if (!ask) return session.step_started_at === null ? session : { ...session, step_started_at: null };
  const of = { question_id: `${session_id}.${iteration}`.slice(-200), asked_at, iteration: Math.max(0, iteration) };
  return { ...session, question: questionOf(ask, of), step_started_at: null };
}

/**
 * The unprocessed actions, in memory.
 *
 * PENDING-1  One action per session is handed out at a time, the most urgent first, then the oldest; for guidance,
 *            `claimFollowing` adds more.
 * PENDING-2  An action that waits for its retry holds back later ones of its session.
 */
export class PendingActions {
  /** Each list is sorted. */
  readonly #bySession = new Map<string, Action[]>();
  /** The ids of claimed actions, by session. */
  readonly #claimed = new Map<string, Set<string>>();
  #depth = 0;
  #waitingForRetry = 0;

  get depth(): number {
    return this.#depth;
  }

  /** The first of these actions' sessions that has a pending action, if any. */
  busySession(actions: readonly Action[]): string | null {
    return actions.find(({ session_id }) => this.#bySession.has(session_id))?.session_id ?? null;
  }

  get oldest(): string | null {
    let oldest: string | null = null;
    for (const actions of this.#bySession.values())
      for (const { created_at } of actions) if (oldest === null || created_at < oldest) oldest = created_at;
    return oldest;
  }

  /** Records an action that was just committed: new, waiting for a retry, or processed. */
  update(action: Action): void {
    const { session_id, action_id } = action;
    const actions = this.#bySession.get(session_id) ?? [];
    const at = placeIn(actions, action);
    const isListed = actions[at]?.action_id === action_id;
    if (isListed) this.#count(actions[at] as Action, -1);
    if (!action.processed) this.#count(action, 1);
    actions.splice(at, isListed ? 1 : 0, ...(action.processed ? [] : [action]));
    if (actions.length > 0) this.#bySession.set(session_id, actions);
    else this.#bySession.delete(session_id);
    const claimed = this.#claimed.get(session_id);
    if (claimed?.delete(action_id) && claimed.size === 0) this.#claimed.delete(session_id);
  }

  claim(limit: number, now: string): Action[] {
    const ready: Action[] = [];
    for (const [session_id, [first]] of this.#bySession) {
      if (!first || this.#claimed.has(session_id)) continue; // PENDING-1
      if (isDue(first, now)) ready.push(first); // PENDING-2
    }
    const selected = ready.sort(byUrgencyThenArrival).slice(0, limit);
    for (const { session_id, action_id } of selected) this.#claimed.set(session_id, new Set([action_id]));
    return selected;
  }

  /** See the port. */
  claimFollowing({ session_id, action_id, payload }: Action, most: GuidanceAmount, now: string): Action[] {
    const claimed = this.#claimed.get(session_id);
    if (!claimed?.has(action_id)) return [];
    const following: Action[] = [];
    let room: GuidanceAmount | null = { count: most.count - 1, bytes: most.bytes - jsonBytes(payload) };
    for (const action of this.#bySession.get(session_id) ?? []) {
      if (claimed.has(action.action_id)) continue;
      if (!isDue(action, now)) break; // PENDING-2
      if (!carriesGuidance(action)) {
        following.push(action);
        break;
      }
      if (room) room = { count: room.count - 1, bytes: room.bytes - jsonBytes(action.payload) };
      if (!room || room.count < 0 || room.bytes < 0) room = null;
      else following.push(action);
    }
    for (const action of following) claimed.add(action.action_id);
    return following;
  }

  /** The pending guidance for a session. */
  guidanceFor(session_id: string): JsonObject[] {
    return (this.#bySession.get(session_id) ?? []).filter(carriesGuidance).map(({ payload }) => payload);
  }

  /** When the next retry is due, in epoch milliseconds; null if none waits. */
  nextRetryAt(): number | null {
    if (this.#waitingForRetry === 0) return null;
    let next: number | null = null;
    for (const [session_id, [first]] of this.#bySession) {
      if (!first?.run_at || this.#claimed.has(session_id)) continue;
      const at = Date.parse(first.run_at);
      if (next === null || at < next) next = at;
    }
    return next;
  }

  #count({ run_at }: Action, change: 1 | -1): void {
    this.#depth += change;
    if (run_at !== null) this.#waitingForRetry += change;
  }
}

const isDue = ({ run_at }: Action, now: string): boolean => run_at === null || run_at <= now;

/** The action's index in a sorted list, or where it would be inserted. */
function placeIn(actions: readonly Action[], action: Action): number {
  let [low, high] = [0, actions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byUrgencyThenArrival(actions[middle] as Action, action) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
