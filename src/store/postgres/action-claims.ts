import { type Action, byUrgencyThenArrival } from "../../domain/action.ts";
import { type GuidanceAmount, jsonBytes } from "../../domain/guidance-amount.ts";
import type { Pool } from "./connections.ts";
import type { WriteFeedback } from "./group-writer.ts";
import { arrayOf, fromText, GUIDANCE, LIVE, type Tables, toText } from "./tables.ts";

/** How often all pending actions are checked, in milliseconds, in case a notification was lost. */
const LOOK_THROUGH_MS = 3000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What the claims need from the rest of the process. */
type OwnProcess = {
  owns: (session_id: string) => boolean;
  /** Other processes that take sessions. */
  others: () => number;
  /** The worker became the owner of these sessions by claiming their first action. */
  taken: (worker: string, session_ids: string[]) => Promise<void>;
  /** There may be something to claim. */
  wake: () => void;
};

/** The state of a session with an action that is claimed here. */
type SessionState =
  /** The statement that wrote the action also claimed it; it waits to be handed out. */
  ({ kind: "preclaimed"; action: Action } & Claimed) | ({ kind: "under_way" } & Claimed);
type Claimed = {
  /** The actions that are claimed. */
  ids: Set<string>;
  /** Whether others wait behind them. */
  hasMore: boolean;
  /** Whether the session may have got another action since they were claimed. */
  hasNews: boolean;
};

/** Whether the database may have actions as claimed by this process that the process does not know of. */
type Certainty =
  | { kind: "certain" }
  | { kind: "in_doubt" }
  | { kind: "giving_back"; done: Promise<void>; isCertain: boolean };

/**
 * Hands out actions (P7).
 *
 * States of a session:
 * - none: no action of it is claimed here.
 * - `preclaimed`: the statement that wrote an action also claimed it. The next claim hands it out, which makes it `under_way`.
 * - `under_way`: its actions were handed out. It has no state again once all of them are committed.
 * In any state the session can be marked as fresh, so that the next claim looks at it: others may have freed its action.
 *
 * States of the whole:
 * - `certain`: every action that the database has as claimed by this process is known here.
 * - `in_doubt`: a claim failed, a commit was fenced, or its answer was lost. The next claim moves on to `giving_back`.
 * - `giving_back`: unknown claims are being released. Then it is `certain`, or `in_doubt` if something failed meanwhile.
 *
 * CLAIMS-1  Only the process that owns a session claims its actions; a session without an owner is claimed along with its first
 *           action. So no two processes work on one session, and none claims an action that it cannot handle.
 * CLAIMS-2  Only the first action of a session (most urgent, then oldest) is handed out, once it is due, and only while no other of
 *           the session is under way.
 * CLAIMS-3  A claim looks only at sessions that may have something new, and at some of those whose action it left before, so it costs
 *           what it finds. Requests to sessions take turns with those that begin one: a pause does not wait until thousands of new
 *           sessions have begun.
 * CLAIMS-4  A claim whose answer was lost may have taken effect and left actions claimed that this process does not know of. They
 *           are released before the next claim. They are read first and compared with what is known afterwards, because an action
 *           that is being written meanwhile may be claimed by that statement.
 * CLAIMS-5  If a session may have got another action while one is under way here, that is remembered until the one ends: the
 *           statement that ends it may have started earlier and not seen the other.
 * CLAIMS-6  A preclaimed action is handed out without reading the queue. If a more urgent one of its session comes first, the claim
 *           is released instead.
 * CLAIMS-7  Actions that follow a claimed one are read only if there are any, and not while unknown claims are released (CLAIMS-4).
 */
export class ActionClaims {
  readonly #pool: Pool;
  readonly #tables: Tables;
  readonly #statements: ClaimStatements;
  readonly #node_no: number;
  readonly #process: OwnProcess;
  readonly #sessions = new Map<string, SessionState>();
  /** The sessions that are preclaimed. */
  readonly #preclaimed = new Set<string>();
  /** Sessions that the next claim looks at. */
  #fresh = new Set<string>();
  /** Sessions whose action was found, and left for a later claim. In order, those that begin with it apart. */
  readonly #left = { begun: new Set<string>(), new: new Set<string>() };
  #certainty: Certainty = { kind: "certain" };
  /** Actions that are being written. */
  readonly #writing = new Set<Action>();
  readonly #asking = new Set<Promise<unknown>>();
  #lookThroughAt = 0;
  #retry: { at: number; timer: NodeJS.Timeout } | null = null;
  readonly #poll: NodeJS.Timeout;

  constructor(pool: Pool, tables: Tables, node_no: number, process: OwnProcess) {
    this.#pool = pool;
    this.#tables = tables;
    this.#statements = claimStatements(tables);
    this.#node_no = node_no;
    this.#process = process;
    this.#poll = setInterval(process.wake, LOOK_THROUGH_MS).unref();
  }

  readonly isClaimed = ({ action_id, session_id }: Action): boolean =>
    this.#sessions.get(session_id)?.ids.has(action_id) ?? false;

  /** The statement itself checks that it is the session's only one. */
  readonly mayClaim = ({ session_id, processed, run_at }: Action): boolean =>
    !processed && run_at === null && this.#process.owns(session_id);

  /** These sessions may have an action to claim. */
  mayHave(session_ids: Iterable<string>): void {
    for (const id of session_ids) {
      this.#fresh.add(id);
      const claimed = this.#sessions.get(id);
      if (claimed) claimed.hasNews = true; // CLAIMS-5
    }
  }

  lookThrough(): void {
    this.#lookThroughAt = 0;
  }

  committed(actions: Action[], feedback: WriteFeedback): void {
    if (!feedback) this.#doubt(); // CLAIMS-4
    for (const action of actions) {
      const { action_id, session_id, processed, run_at } = action;
      this.#writing.delete(action);
      const hadNews = this.#release(action);
      if (feedback?.claimed.has(action_id))
        this.#enter(session_id, { kind: "preclaimed", action, ...this.#newlyClaimed(action, false) });
      else if (!processed || !feedback || hadNews || feedback.more.has(session_id)) {
        this.#giveBackLessUrgent(action);
        this.mayHave([session_id]);
        const claimed = this.#sessions.get(session_id);
        if (claimed) claimed.hasMore = true;
      }
      if (!processed && run_at !== null) this.#wakeAt(Date.parse(run_at));
    }
  }

  /** A commit of these was refused: whoever has claimed them now settles them. */
  dropped(actions: Action[]): void {
    for (const action of actions) this.#release(action);
    this.mayHave(actions.map(({ session_id }) => session_id));
    this.#doubt();
  }

  /** CLAIMS-4. Waits for what is written with these actions. */
  async during<Result>(actions: readonly Action[], written: Promise<Result>): Promise<Result> {
    for (const action of actions) this.#writing.add(action);
    try {
      return await written;
    } finally {
      for (const action of actions) this.#writing.delete(action);
    }
  }

  async claim({ worker, limit }: { worker: string; limit: number }): Promise<Action[]> {
    const preclaimed = this.#takePreclaimed(limit);
    if (preclaimed.length > 0) {
      setImmediate(this.#process.wake); // There may be more.
      return preclaimed;
    }
    const looksThrough = performance.now() >= this.#lookThroughAt;
    const fresh = [...this.#fresh];
    this.#fresh = new Set();
    if (!looksThrough && fresh.length === 0 && !this.#hasLeft) return [];
    if (looksThrough) this.#lookThroughAt = performance.now() + LOOK_THROUGH_MS;
    try {
      if (this.#certainty.kind !== "certain") await this.#giveBackUnknown(); // CLAIMS-4
      const session_ids = looksThrough ? null : this.#someLeft(fresh, LEFT_FOR_EACH * limit);
      return (await this.#claimAmong(session_ids, worker, limit)).sort(byUrgencyThenArrival);
    } catch (error) {
      this.#doubt();
      this.#lookThroughAt = 0;
      throw error;
    }
  }

  /** See the port. */
  async claimFollowing({ action_id, session_id, payload }: Action, most: GuidanceAmount): Promise<Action[]> {
    while (this.#certainty.kind === "giving_back") await this.#certainty.done.catch(() => {}); // CLAIMS-7
    const claimed = this.#sessions.get(session_id);
    const hasFollowing = claimed?.ids.has(action_id) && (claimed.hasMore || claimed.hasNews);
    if (!hasFollowing || most.count < 2) return [];
    const asking = this.#pool.once(
      this.#statements.following,
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
      const following = (await asking).map((row) => this.#tables.toRow("queue", row)).sort(byUrgencyThenArrival);
      for (const action of following) {
        const state = this.#sessions.get(session_id);
        if (state) state.ids.add(action.action_id);
        else this.#enter(session_id, { kind: "under_way", ...this.#newlyClaimed(action, true) });
      }
      return following;
    } catch (error) {
      this.#doubt();
      throw error;
    }
  }

  stop(): void {
    clearInterval(this.#poll);
    clearTimeout(this.#retry?.timer);
  }

  #enter(session_id: string, state: SessionState | null): void {
    if (state) this.#sessions.set(session_id, state);
    else this.#sessions.delete(session_id);
    if (state?.kind === "preclaimed") this.#preclaimed.add(session_id);
    else this.#preclaimed.delete(session_id);
  }

  /** CLAIMS-5 also for what came while the action was being claimed. */
  #newlyClaimed({ action_id, session_id }: Action, hasMore: boolean): Claimed {
    return { ids: new Set([action_id]), hasMore, hasNews: this.#fresh.has(session_id) };
  }

  /** The action is no longer under way here. Returns whether its session may have got another meanwhile (CLAIMS-5). */
  #release({ action_id, session_id }: Action): boolean {
    const claimed = this.#sessions.get(session_id);
    if (!claimed?.ids.delete(action_id) || claimed.ids.size > 0) return false;
    this.#enter(session_id, null);
    return claimed.hasNews;
  }

  /** CLAIMS-6. */
  #giveBackLessUrgent(action: Action): void {
    const state = this.#sessions.get(action.session_id);
    if (state?.kind !== "preclaimed" || action.processed || byUrgencyThenArrival(state.action, action) <= 0) return;
    this.#enter(action.session_id, null);
    this.#doubt();
  }

  #takePreclaimed(limit: number): Action[] {
    const states = [...this.#preclaimed].map((id) => this.#sessions.get(id) as SessionState & { kind: "preclaimed" });
    const taken = states.sort((a, b) => byUrgencyThenArrival(a.action, b.action)).slice(0, limit);
    for (const { action, ids, hasMore, hasNews } of taken)
      this.#enter(action.session_id, { kind: "under_way", ids, hasMore, hasNews });
    return taken.map(({ action }) => action);
  }

  #doubt(): void {
    if (this.#certainty.kind === "giving_back") this.#certainty.isCertain = false;
    else this.#certainty = { kind: "in_doubt" };
  }

  #giveBackUnknown(): Promise<void> {
    if (this.#certainty.kind === "giving_back") return this.#certainty.done;
    const state = { kind: "giving_back" as const, isCertain: true, done: Promise.resolve() };
    this.#certainty = state;
    state.done = this.#giveBackNow()
      .catch((error: unknown) => {
        state.isCertain = false;
        throw error;
      })
      .finally(() => {
        this.#certainty = state.isCertain ? { kind: "certain" } : { kind: "in_doubt" };
      });
    return state.done;
  }

  async #giveBackNow(): Promise<void> {
    while (this.#asking.size > 0) await Promise.all(this.#asking);
    const rows = await this.#pool.query("select action_id from queue where claimed_by = $1", this.#node_no);
    const ownIds = new Set([...this.#writing].map(({ action_id }) => action_id));
    for (const { ids } of this.#sessions.values()) for (const id of ids) ownIds.add(id);
    const unknownIds = rows.map(({ action_id }) => fromText(String(action_id))).filter((id) => !ownIds.has(id));
    if (unknownIds.length === 0) return;
    await this.#pool.query(
      "update queue set claimed_by = null where claimed_by = $1 and action_id = any ($2::text[])",
      this.#node_no,
      arrayOf(unknownIds.map(toText)),
    );
  }

  /** Of these sessions, or of all. */
  async #claimAmong(session_ids: string[] | null, worker: string, limit: number): Promise<Action[]> {
    const rows = await this.#pool.once(
      session_ids ? this.#statements.among : this.#statements.all,
      this.#node_no,
      toText(worker),
      new Date().toISOString(),
      limit,
      this.#process.others() + 1,
      ...(session_ids ? [arrayOf(session_ids.map(toText))] : []),
    );
    const rowsOf = (kind: ClaimRow): Record<string, unknown>[] => rows.filter(({ row_kind }) => row_kind === kind);
    const sessionsOf = (kind: ClaimRow): string[] => rowsOf(kind).map((row) => fromText(row["session_id"] as string));
    for (const row of rowsOf("waiting")) this.#wakeAt(Date.parse(row["run_at"] as string));
    const [taken, more] = [sessionsOf("taken"), new Set(sessionsOf("more"))];
    this.#leave(session_ids, { begun: sessionsOf("left_begun"), new: sessionsOf("left_new") });
    if (taken.length > 0) await this.#process.taken(worker, taken);
    const actions = rowsOf("claimed").map((row) => this.#tables.toRow("queue", row));
    for (const action of actions) {
      const { session_id } = action;
      this.#enter(session_id, { kind: "under_way", ...this.#newlyClaimed(action, more.has(session_id)) });
    }
    return actions;
  }

  get #hasLeft(): boolean {
    return this.#left.begun.size > 0 || this.#left.new.size > 0;
  }

  /** With these, the first ones that were left of each kind. */
  #someLeft(session_ids: readonly string[], most: number): string[] {
    return [...new Set([...session_ids, ...firstOf(this.#left.begun, most), ...firstOf(this.#left.new, most)])];
  }

  /** What a claim that looked at these sessions, or at all, left of each kind. */
  #leave(session_ids: readonly string[] | null, found: Readonly<Record<"begun" | "new", string[]>>): void {
    for (const kind of ["begun", "new"] as const) {
      const left = this.#left[kind];
      const still = new Set(found[kind]);
      for (const id of session_ids ?? left) if (!still.has(id)) left.delete(id);
      for (const id of still) left.add(id);
    }
    if (this.#hasLeft) setImmediate(this.#process.wake);
  }

  #wakeAt(at: number): void {
    if (at >= (this.#retry?.at ?? Number.POSITIVE_INFINITY)) return;
    clearTimeout(this.#retry?.timer);
    const wake = (): void => {
      this.#retry = null;
      this.lookThrough();
      this.#process.wake();
    };
    const ms = Math.max(1, Math.min(at - Date.now() + 1, LONGEST_TIMER_MS));
    this.#retry = { at, timer: setTimeout(wake, ms) };
  }
}

function* firstOf(ids: ReadonlySet<string>, most: number): Generator<string> {
  let count = 0;
  for (const id of ids) {
    if (count++ === most) return;
    yield id;
  }
}

/** What a row tells that a claim answers. */
type ClaimRow = "claimed" | "waiting" | "left_begun" | "left_new" | "taken" | "more";
type ClaimStatements = { among: string; all: string; following: string };

/** How many sessions of each kind whose action was left are looked at for each that may be claimed: some are taken meanwhile. */
const LEFT_FOR_EACH = 2;
/** Sessions of nobody that are taken at once at least, where other workers want their share of them. */
const FREE_AT_ONCE = 4;
const IN_ORDER = "order by urgency desc, created_at, action_id";

const claimStatements = (tables: Tables): ClaimStatements => ({
  // The inner select hides how many sessions there are this time: a plan for any number is as good, and is kept, where the
  // server would else plan each claim anew.
  among: claimFrom("select unnest((select $6::text[])) as session_id", tables),
  all: claimFrom("select distinct q.session_id from queue q where not q.processed and q.claimed_by is null", tables),
  following: claimFollowing(tables),
});

const claimFrom = (sessions: string, tables: Tables): string => {
  const only = (column: "run_at" | "session_id"): string => onlyColumn(tables, column);
  return `
with candidates as (${sessions}),
heads as materialized (
  select h.action_id, h.session_id, h.urgency, h.created_at, h.run_at, s.node_no as owner_no, s.status,
    s.node_no is null and s.status in (${LIVE}, 'error') as is_free,
    coalesce(s.created_action_id = h.action_id, false) as is_new
  from candidates w
  cross join lateral (
    select q.action_id, q.session_id, q.urgency, q.created_at, q.run_at from queue q
    where q.session_id = w.session_id and not q.processed
    order by q.urgency desc, q.created_at, q.action_id limit 1) h
  left join agent_state s on s.session_id = h.session_id
  where (s.node_no is null or s.node_no = $1)
    and not exists (select 1 from queue b where b.session_id = h.session_id and b.claimed_by is not null)),
ready as materialized (
  select *, row_number() over (partition by coalesce(is_free, false) order by urgency desc, created_at, action_id) as place,
    count(*) over (partition by coalesce(is_free, false)) as together,
    row_number() over (partition by is_new order by urgency desc, created_at, action_id) as turn
  from heads where (run_at is null or run_at <= $3::timestamptz)),
chosen as materialized (
  select * from ready where not coalesce(is_free, false) or place <= greatest(${FREE_AT_ONCE}, (together + $5 - 1) / $5)
  order by turn, is_new, urgency desc, created_at, action_id limit $4), -- CLAIMS-3
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
  returning ${tables.selected("queue", "q")})
select 'claimed' as row_kind, c.* from claimed c
union all select 'waiting', ${only("run_at")} from heads h where h.run_at > $3::timestamptz
union all select case when h.is_new then 'left_new' else 'left_begun' end, ${only("session_id")}
  from ready h where h.action_id not in (select action_id from chosen)
union all select 'taken', ${only("session_id")} from taken h
union all select 'more', ${only("session_id")} from chosen h where exists (
  select 1 from queue o where o.session_id = h.session_id and not o.processed and o.action_id <> h.action_id)`;
};

/** A row of the queue with nothing but one column of `h`. */
const onlyColumn = (tables: Tables, column: string): string =>
  tables
    .names("queue")
    .map((name) => (name === column ? `h.${name}` : "null"))
    .join(", ");

/**
 * What follows an action that this process has claimed (see the port): the guidance that is next, as far as the parameters for
 * count and bytes go, and the first request that is none. A request that waits for a retry holds back what comes after it.
 */
const claimFollowing = (tables: Tables): string => `
with line as materialized (
  select action_id, urgency, created_at, action_type in (${GUIDANCE}) as is_guidance, coalesce(run_at > $4::timestamptz, false) as waits,
    payload
  from queue where session_id = $3 and not processed and claimed_by is null ${IN_ORDER} limit $5),
measured as (
  select action_id, sum(octet_length(payload::text)) over places as bytes, bool_or(waits or not is_guidance) over places as is_over
  from line window places as (${IN_ORDER})),
other as materialized (
  select action_id, urgency, created_at from queue
  where session_id = $3 and not processed and claimed_by is null and action_type not in (${GUIDANCE}) ${IN_ORDER} limit 1),
chosen as (
  select action_id from measured where not is_over and bytes <= $6
  union all
  select o.action_id from other o where not exists (
    select 1 from queue b where b.session_id = $3 and not b.processed and b.run_at > $4::timestamptz
      and (-b.urgency, b.created_at, b.action_id) <= (-o.urgency, o.created_at, o.action_id)))
update queue q set claimed_by = $1 from chosen c
where q.action_id = c.action_id and q.claimed_by is null and not q.processed
  and exists (select 1 from queue f where f.action_id = $2 and f.claimed_by = $1 and not f.processed)
returning ${tables.selected("queue", "q")}`;
