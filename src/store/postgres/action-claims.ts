import { type Action, byUrgencyThenArrival } from "../../domain/action.ts";
import { type GuidanceAmount, jsonBytes } from "../guidance-amount.ts";
import { CLAIM_ALL, CLAIM_AMONG, CLAIM_FOLLOWING } from "./claim-statements.ts";
import type { Pool } from "./connections.ts";
import type { Told } from "./group-writer.ts";
import { toRow } from "./tables.ts";
import { arrayOf, fromText, toText } from "./values.ts";

/** How often all pending actions are looked through, in milliseconds: the backstop for news that was lost. */
const LOOK_THROUGH_MS = 3000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What else the process that claims knows and does. */
type OwnProcess = {
  owns: (session_id: string) => boolean;
  /** Other processes that take sessions. */
  others: () => number;
  /** These sessions became the worker's with their first action. */
  taken: (worker: string, session_ids: string[]) => Promise<void>;
  /** There may be something to claim. */
  ring: () => void;
};

/**
 * Hands out actions (P7).
 *
 * A1  The actions of a session are claimed by the process that owns it; one of nobody's is taken with its first action. So
 *     two processes never work on one session, and no action is claimed by a process that cannot handle it.
 * A2  Only the first action of a session, the most urgent then the oldest, is handed out, once its time has come, and only
 *     while none of the session is under way.
 * A3  Sessions that may have something new are looked at, not all: a claim costs what it finds.
 * A4  A claim whose answer was lost may have gone through; then actions are claimed that nobody here knows of. So before the
 *     next claim those are given back. They are looked up first, and only then it is told which of them nobody knows: what is
 *     written meanwhile may be claimed as it is.
 * A5  News of a session that comes while one of its actions is under way here is kept until that one ends: the statement that
 *     ends it may have begun before.
 * A6  An action that was claimed as it was written is handed out without a look; where a more urgent one of its session comes
 *     before that, it is given back first.
 * A7  What follows a claimed action is only asked for where there is something. While unknown claims are given back (A4) nothing is
 *     asked for.
 */
export class ActionClaims {
  readonly #pool: Pool;
  readonly #node_no: number;
  readonly #process: OwnProcess;
  readonly #claimed = new Set<string>();
  /** Sessions that have an action under way here, whether others waited behind it, and whether there was news of them since. */
  readonly #busy = new Map<string, { hasNews: boolean; hasMore: boolean }>();
  /** On their way to the database. */
  readonly #writing = new Set<Action>();
  /** By session: claimed as they were written, and not handed out yet. */
  readonly #born = new Map<string, Action>();
  #fresh = new Set<string>();
  #inDoubt = false;
  #givingBack: Promise<void> | undefined;
  readonly #asking = new Set<Promise<unknown>>();
  #lookThroughAt = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #retryAt = Number.POSITIVE_INFINITY;
  readonly #poll: NodeJS.Timeout;

  constructor(pool: Pool, node_no: number, process: OwnProcess) {
    this.#pool = pool;
    this.#node_no = node_no;
    this.#process = process;
    this.#poll = setInterval(process.ring, LOOK_THROUGH_MS).unref();
  }

  readonly isClaimed = (action_id: string): boolean => this.#claimed.has(action_id);

  /** The statement looks whether it is the only one of its session. */
  readonly mayClaim = ({ session_id, processed, run_at }: Action): boolean =>
    !processed && run_at === null && this.#process.owns(session_id);

  /** These sessions may have an action to claim. */
  mayHave(session_ids: Iterable<string>): void {
    for (const id of session_ids) {
      this.#fresh.add(id);
      const busy = this.#busy.get(id);
      if (busy) busy.hasNews = true; // A5
    }
  }

  lookThrough(): void {
    this.#lookThroughAt = 0;
  }

  committed(actions: Action[], told: Told): void {
    if (!told) this.#inDoubt = true; // A4
    for (const action of actions) {
      const { action_id, session_id, processed, run_at } = action;
      this.#writing.delete(action);
      const hadNews = this.#forget(action);
      if (told?.claimed.has(action_id)) {
        this.#handOut(action);
        this.#born.set(session_id, action);
      } else if (!processed || !told || hadNews || told.more.has(session_id)) {
        this.#fresh.add(session_id);
        this.#giveBackLessUrgent(action);
        const busy = this.#busy.get(session_id);
        if (busy) busy.hasMore = true;
      }
      if (!processed && run_at !== null) this.#wakeAt(Date.parse(run_at));
    }
  }

  #handOut({ action_id, session_id }: Action, hasMore = false): void {
    this.#claimed.add(action_id);
    this.#busy.set(session_id, { hasNews: false, hasMore });
  }

  /** The action is not under way here any more. Tells whether there was news of its session meanwhile (A5). */
  #forget({ action_id, session_id }: Action): boolean {
    if (!this.#claimed.delete(action_id)) return false;
    const hadNews = this.#busy.get(session_id)?.hasNews ?? false;
    this.#busy.delete(session_id);
    return hadNews;
  }

  /** A6. */
  #giveBackLessUrgent(action: Action): void {
    const born = this.#born.get(action.session_id);
    if (!born || action.processed || byUrgencyThenArrival(born, action) <= 0) return;
    this.#born.delete(action.session_id);
    this.#forget(born);
    this.#inDoubt = true;
  }

  /** These were not written: whoever has them now settles them. */
  dropped(actions: Action[]): void {
    for (const action of actions) {
      this.#forget(action);
      this.#fresh.add(action.session_id);
    }
    this.#inDoubt = true;
  }

  /** A4. Waits for what is written with these actions. */
  async during<Result>(actions: readonly Action[], written: Promise<Result>): Promise<Result> {
    for (const action of actions) this.#writing.add(action);
    try {
      return await written;
    } finally {
      for (const action of actions) this.#writing.delete(action);
    }
  }

  async claim({ worker, limit }: { worker: string; limit: number }): Promise<Action[]> {
    const born = [...this.#born.values()].sort(byUrgencyThenArrival).slice(0, limit);
    if (born.length > 0) {
      for (const { session_id } of born) this.#born.delete(session_id);
      setImmediate(this.#process.ring); // There may be others.
      return born;
    }
    const looksThrough = performance.now() >= this.#lookThroughAt;
    const sessions = this.#fresh;
    this.#fresh = new Set();
    if (!looksThrough && sessions.size === 0) return [];
    if (looksThrough) this.#lookThroughAt = performance.now() + LOOK_THROUGH_MS;
    try {
      if (this.#inDoubt) await this.#giveBackUnknown(); // A4
      return (await this.#claimFor(looksThrough ? null : [...sessions], worker, limit)).sort(byUrgencyThenArrival);
    } catch (error) {
      this.#inDoubt = true;
      this.#lookThroughAt = 0;
      throw error;
    }
  }

  /** See the port. */
  async claimFollowing({ action_id, session_id, payload }: Action, most: GuidanceAmount): Promise<Action[]> {
    while (this.#givingBack) await this.#givingBack; // A7
    const busy = this.#busy.get(session_id);
    const hasFollowing = busy !== undefined && this.#claimed.has(action_id) && (busy.hasMore || busy.hasNews);
    if (!hasFollowing || most.count < 2) return [];
    const asking = this.#pool.once(
      CLAIM_FOLLOWING,
      this.#node_no,
      toText(action_id),
      toText(session_id),
      new Date().toISOString(),
      most.count - 1,
      most.bytes - jsonBytes(payload),
    );
    const settled = asking.catch(() => {}).then(() => void this.#asking.delete(settled));
    this.#asking.add(settled);
    try {
      const following = (await asking).map((row) => toRow("queue", row)).sort(byUrgencyThenArrival);
      for (const action of following) this.#claimed.add(action.action_id);
      return following;
    } catch (error) {
      this.#inDoubt = true;
      throw error;
    }
  }

  #giveBackUnknown(): Promise<void> {
    this.#givingBack ??= this.#giveBackNow().finally(() => {
      this.#givingBack = undefined;
    });
    return this.#givingBack;
  }

  async #giveBackNow(): Promise<void> {
    while (this.#asking.size > 0) await Promise.all(this.#asking);
    this.#inDoubt = false;
    const rows = await this.#pool.query("select action_id from queue where claimed_by = $1", this.#node_no);
    const known = new Set([...this.#claimed, ...[...this.#writing].map(({ action_id }) => action_id)]);
    const unknown = rows.map(({ action_id }) => fromText(String(action_id))).filter((id) => !known.has(id));
    if (unknown.length === 0) return;
    await this.#pool.query(
      "update queue set claimed_by = null where claimed_by = $1 and action_id = any ($2::text[])",
      this.#node_no,
      arrayOf(unknown.map(toText)),
    );
  }

  stop(): void {
    clearInterval(this.#poll);
    clearTimeout(this.#retryTimer);
  }

  async #claimFor(session_ids: string[] | null, worker: string, limit: number): Promise<Action[]> {
    const rows = await this.#pool.once(
      session_ids ? CLAIM_AMONG : CLAIM_ALL,
      this.#node_no,
      toText(worker),
      new Date().toISOString(),
      limit,
      this.#process.others() + 1,
      ...(session_ids ? [arrayOf(session_ids.map(toText))] : []),
    );
    const found = rows.filter(({ found_as }) => found_as === "claimed").map((row) => toRow("queue", row));
    const waiting = rows.filter(({ found_as }) => found_as === "waiting");
    for (const row of waiting) this.#wakeAt(Date.parse(row["run_at"] as string));
    const sessionsOf = (kind: string): string[] =>
      rows.filter(({ found_as }) => found_as === kind).map((row) => fromText(row["session_id"] as string));
    const [left, taken, more] = [sessionsOf("left"), sessionsOf("taken"), new Set(sessionsOf("more"))];
    if (left.length > 0) {
      this.mayHave(left);
      setImmediate(this.#process.ring);
    }
    if (taken.length > 0) await this.#process.taken(worker, taken);
    for (const action of found) this.#handOut(action, more.has(action.session_id));
    return found;
  }

  #wakeAt(at: number): void {
    if (at >= this.#retryAt) return;
    this.#retryAt = at;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(
      () => {
        this.#retryAt = Number.POSITIVE_INFINITY;
        this.lookThrough();
        this.#process.ring();
      },
      Math.max(1, Math.min(at - Date.now() + 1, LONGEST_TIMER_MS)),
    );
  }
}
