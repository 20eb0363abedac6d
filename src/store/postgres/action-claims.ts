import { type Action, byUrgencyThenArrival } from "../../domain/action.ts";
import type { Pool } from "./connections.ts";
import type { Told } from "./group-writer.ts";
import { LIVE } from "./session-reads.ts";
import { selected, toRow } from "./tables.ts";
import { arrayOf, fromText, toText } from "./values.ts";

/** How often all pending actions are looked through, in milliseconds: the backstop for news that was lost. */
const LOOK_THROUGH_MS = 3000;
/** Sessions of nobody that are taken at once at least, where other workers want their share of them. */
const FREE_AT_ONCE = 4;
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
 */
export class ActionClaims {
  readonly #pool: Pool;
  readonly #node_no: number;
  readonly #process: OwnProcess;
  readonly #claimed = new Set<string>();
  /** Sessions that have an action under way here, and whether there was news of them since. */
  readonly #busy = new Map<string, { hasNews: boolean }>();
  /** On their way to the database. */
  readonly #writing = new Set<Action>();
  /** By session: claimed as they were written, and not handed out yet. */
  readonly #born = new Map<string, Action>();
  #fresh = new Set<string>();
  #inDoubt = false;
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
      }
      if (!processed && run_at !== null) this.#wakeAt(Date.parse(run_at));
    }
  }

  #handOut({ action_id, session_id }: Action): void {
    this.#claimed.add(action_id);
    this.#busy.set(session_id, { hasNews: false });
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
      const actions = await this.#claimFor(looksThrough ? null : [...sessions], worker, limit);
      for (const action of actions) this.#handOut(action);
      return actions.sort(byUrgencyThenArrival);
    } catch (error) {
      this.#inDoubt = true;
      this.#lookThroughAt = 0;
      throw error;
    }
  }

  async #giveBackUnknown(): Promise<void> {
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
    const [left, taken] = [sessionsOf("left"), sessionsOf("taken")];
    if (left.length > 0) {
      this.mayHave(left);
      setImmediate(this.#process.ring);
    }
    if (taken.length > 0) await this.#process.taken(worker, taken);
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

const claimFrom = (sessions: string): string => `
with wanted as (${sessions}),
heads as materialized (
  select h.action_id, h.session_id, h.urgency, h.created_at, h.run_at, s.node_no as owner_no, s.status,
    s.node_no is null and s.status in (${LIVE}, 'error') as is_free
  from wanted w
  cross join lateral (
    select q.action_id, q.session_id, q.urgency, q.created_at, q.run_at from queue q
    where q.session_id = w.session_id and not q.processed
    order by q.urgency desc, q.created_at, q.action_id limit 1) h
  left join agent_state s on s.session_id = h.session_id
  where (s.node_no is null or s.node_no = $1)
    and not exists (select 1 from queue b where b.session_id = h.session_id and b.claimed_by is not null)),
ready as materialized (
  select *, row_number() over (partition by coalesce(is_free, false) order by urgency desc, created_at, action_id) as place,
    count(*) over (partition by coalesce(is_free, false)) as together
  from heads where (run_at is null or run_at <= $3::timestamptz)),
chosen as materialized (
  select * from ready where not coalesce(is_free, false) or place <= greatest(${FREE_AT_ONCE}, (together + $5 - 1) / $5)
  order by urgency desc, created_at, action_id limit $4),
free as materialized (
  select s.session_id from agent_state s
  where s.session_id in (select session_id from chosen where is_free) and s.node_no is null
    and exists (select 1 from workers where node_no = $1)
  order by s.session_id for update skip locked),
taken as (
  update agent_state s set owner = $2, node_no = $1, epoch = s.epoch + 1 from free f
  where s.session_id = f.session_id returning s.session_id),
claimed as (
  update queue q set claimed_by = $1 from chosen c
  where q.action_id = c.action_id and q.claimed_by is null and not q.processed
    and (not coalesce(c.is_free, false) or c.session_id in (select session_id from taken))
  returning ${selected("queue", "q")})
select 'claimed' as found_as, c.* from claimed c
union all select 'waiting', ${nullsFor("run_at")} from heads h where h.run_at > $3::timestamptz
union all select 'left', ${nullsFor("session_id")} from ready h where h.action_id not in (select action_id from chosen)
union all select 'taken', ${nullsFor("session_id")} from taken h`;

/** A row of the queue with nothing but one column of `h`. */
function nullsFor(column: "run_at" | "session_id"): string {
  return selected("queue", "h")
    .split(", ")
    .map((name) => (name === `h.${column}` ? name : "null"))
    .join(", ");
}

// The inner select hides how many sessions there are this time: a plan for any number is as good, and is kept, where the server
// would else plan each claim anew.
const CLAIM_AMONG = claimFrom("select unnest((select $6::text[])) as session_id");
const CLAIM_ALL = claimFrom("select distinct q.session_id from queue q where not q.processed and q.claimed_by is null");
