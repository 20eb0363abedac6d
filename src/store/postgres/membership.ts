import { getCompileCacheDir } from "node:module";
import { Worker } from "node:worker_threads";
import { type Failure, isCollision, isOutOfReach, type Row } from "./connections.ts";
import type { NotifyConnection } from "./notify-connection.ts";
import { arrayOf, LIVE } from "./tables.ts";

export type MembershipTuning = {
  /** How long a process that stops renewing its lease counts as alive, in milliseconds. 5,000 by default. */
  lease_ms: number;
  /** How often dead processes are looked for, in milliseconds. 250 by default. */
  tick_ms: number;
  /** How often sessions are shared out anew, in milliseconds. 1,000 by default. */
  share_ms: number;
};
export const MEMBERSHIP_TUNING: MembershipTuning = { lease_ms: 5000, tick_ms: 250, share_ms: 1000 };

type Query = NotifyConnection["query"];

/**
 * MEMBERS-4. The processes that own something without being in the list: they claimed it at the very moment in which they were declared
 * dead. Goes from one owner to the next along the index, so it does not matter how many sessions each has.
 */
export const ORPHANED_NODES = `with recursive owners as (
    (select node_no from agent_state where node_no is not null order by node_no limit 1)
    union all select (select s.node_no from agent_state s where s.node_no > o.node_no order by s.node_no limit 1)
      from owners o where o.node_no is not null),
  receipts as (delete from writers where node_no not in (select node_no from workers))
  select node_no from (select node_no from owners where node_no is not null
    union select claimed_by from queue where claimed_by is not null) n
  where node_no not in (select node_no from workers)`;
/** What becomes of a dead process's sessions. */
const FREED =
  "owner = null, node_no = null, epoch = epoch + 1, owner_died = true, died_node_no = node_no, step_started_at = null";
/** OWNERS-4. What a process that is gone had, besides the sessions that do not run. */
const freeFirst = (gone: string): string => `with gone as materialized (${gone}),
  sessions as (update agent_state set ${FREED} where node_no in (select node_no from gone) and status = 'running'),
  actions as (update queue set claimed_by = null where claimed_by in (select node_no from gone))
  select node_no from gone`;
const FREE_DEAD = freeFirst("delete from workers where node_no = $1 returning node_no");
/** Checks the list once more: a process that only lost its connection comes back under its number. */
const FREE_ORPHANS = freeFirst(
  "select n as node_no from unnest($1::integer[]) n where n not in (select node_no from workers)",
);
/** Few enough that the connection's other statements need not wait for long. */
const FREED_AT_ONCE = 1000;
/** If the process is back on the list, what it owns is its own again. */
const FREE_OTHERS = `with freed as (
    update agent_state set ${FREED} where session_id = any (array(
      select session_id from agent_state where node_no = $1 and not exists (select 1 from workers where node_no = $1)
      limit ${FREED_AT_ONCE} for update))
    returning 1)
  select count(*) as count from freed`;
/** How many times a tick does so for a process. */
const FREED_A_TICK = 5;
/** MEMBERS-4. The counts that lists keep, so that no session is read; exact, as `session-lists.ts` says (LISTS-2). */
export const SHARING = `select (select count(*)::integer from workers where takes_sessions and node_no <> $1) as others,
    exists (select 1 from agent_state where node_no is null and status in (${LIVE})) as has_free,
    (select coalesce(sum(count), 0)::float8 from session_counts where agent_key = '' and moniker_key = '' and status in (${LIVE}))
      + (select coalesce(sum(change), 0)::float8 from session_count_changes where status in (${LIVE})) as live`;
const ORPHANS_MS = 10_000;
export type MembershipListener = {
  /** This process freed sessions or actions of others. */
  freed: () => void;
  /** There are sessions that this process should take. */
  free: () => void;
  /** This process owns this many sessions more than its share. */
  surplus: (count: number) => void;
  /** How many other processes share the database, and how many of them follow what is committed. */
  peers: (count: number, following: number) => void;
  /** Whether this process follows what is committed. */
  follows: () => boolean;
  /** How many sessions this process owns. */
  owned: () => number;
};

/**
 * Which processes share the database.
 *
 * MEMBERS-1  A process is alive while its heartbeat holds its advisory lock, which a killed process loses with its connection, and
 *     renews its lease, which a frozen process does not. Whoever notices that either is gone frees what the process owned; the
 *     epoch grows, so that the process can no longer write.
 * MEMBERS-2  A lock must be found free twice in a row, so that a process which is reconnecting counts as alive.
 * MEMBERS-3  Sessions are shared out evenly among the processes that take sessions. So that they rarely move, there is some slack,
 *     and what is too many must be so twice in a row.
 * MEMBERS-4  What every process asks again and again costs the same however many sessions there are.
 * MEMBERS-5  Sessions without an owner stand still. So while there are some, and after some were released or claimed, every tick
 *     looks for them: shares are different by then, as sessions begin and end.
 */
export class Membership {
  readonly node_no: number;
  readonly #lock: number;
  readonly #tuning: MembershipTuning;
  readonly #listener: MembershipListener;
  #suspects = new Set<number>();
  /** Processes that are gone, whose sessions are not all free yet. */
  readonly #toFree = new Set<number>();
  #takesSessions = false;
  #published = "";
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> | undefined;
  #stopped = false;
  #shareAt = 0;
  #mayHaveFree = false;
  /** How many sessions this process had too many at the last look. */
  #surplus = 0;
  #orphansAt = 0;
  /** Has just connected: the others may be reconnecting as well. */
  #reapFrom = 0;
  #share = Number.POSITIVE_INFINITY;
  #others = 0;

  constructor(
    { node_no, lock }: { node_no: number; lock: number },
    tuning: MembershipTuning,
    listener: MembershipListener,
  ) {
    this.node_no = node_no;
    this.#lock = lock;
    this.#tuning = tuning;
    this.#listener = listener;
  }

  /** Other processes that take sessions. */
  get others(): number {
    return this.#others;
  }

  /** Whether this process takes sessions and, as far as it knows, is the only one that does. */
  get isOnlyWorker(): boolean {
    return this.#takesSessions && this.#others === 0;
  }

  /** The connection is back. */
  isBack(): void {
    this.#reapFrom = performance.now() + (this.#timer ? 4 * this.#tuning.tick_ms : 0);
  }

  /** Others removed this process from the list; it is back on it, but without its flags. */
  wasTakenForDead(): void {
    this.#published = "";
  }

  start(query: Query): void {
    const tick = (): void => {
      this.#ticking = this.#tick(query).finally(() => {
        if (!this.#stopped) this.#timer = setTimeout(tick, this.#tuning.tick_ms);
      });
    };
    this.#timer = setTimeout(tick, this.#tuning.tick_ms);
  }

  async takeSessions(query: Query): Promise<void> {
    if (this.#takesSessions) return;
    this.#takesSessions = true;
    await this.#publish(query);
    await this.#reap(query, true);
  }

  /** How many more sessions this process should own. Asks anew: others may have released theirs since the last look. */
  async room(query: Query): Promise<number> {
    this.mayHaveFree();
    await this.#updateShare(query);
    return Math.max(0, this.#share - this.#listener.owned());
  }

  /** MEMBERS-5. */
  mayHaveFree(): void {
    this.#mayHaveFree = true;
  }

  /** Records in the table, where the others look, that this process follows commits. */
  async follow(query: Query): Promise<void> {
    await this.#publish(query);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#ticking;
  }

  async #tick(query: Query): Promise<void> {
    try {
      const now = performance.now();
      await this.#publish(query);
      if (now >= this.#reapFrom) await this.#reap(query, false);
      await this.#freeOthers(query);
      if (this.#takesSessions && now >= this.#orphansAt) {
        this.#orphansAt = now + ORPHANS_MS;
        const orphaned = await query(ORPHANED_NODES);
        if (orphaned.length > 0) this.#free(await query(FREE_ORPHANS, arrayOf(orphaned.map(nodeOf))));
      }
      const isShareDue = now >= this.#shareAt;
      if (this.#takesSessions && (isShareDue || this.#mayHaveFree)) {
        this.#mayHaveFree = false;
        const hasFree = await this.#updateShare(query);
        this.#mayHaveFree ||= hasFree;
        const owned = this.#listener.owned();
        if (hasFree && owned < this.#share) this.#listener.free();
        if (isShareDue) {
          this.#shareAt = now + this.#tuning.share_ms;
          this.#giveUpSurplus(owned);
        }
      }
    } catch (error) {
      // The connection comes back by itself; the next tick tries again.
      if (!isOutOfReach(error) && !isCollision(error)) process.emitWarning(error as Error);
    }
  }

  /** MEMBERS-3. */
  #giveUpSurplus(owned: number): void {
    const slack = Math.max(1, this.#share * 0.1);
    const before = this.#surplus;
    this.#surplus = owned > this.#share + slack ? owned - this.#share : 0;
    const lasting = Math.min(before, this.#surplus);
    if (lasting > 0) this.#listener.surplus(lasting);
  }

  /** What others should know of this process besides that it is alive. */
  async #publish(query: Query): Promise<void> {
    const follows = this.#listener.follows();
    const published = `${this.#takesSessions} ${follows}`;
    if (published === this.#published) return;
    await query(
      "update workers set takes_sessions = $2, follows = $3 where node_no = $1",
      this.node_no,
      this.#takesSessions,
      follows,
    );
    this.#published = published;
  }

  /** MEMBERS-1. At the start, finding a lock free once is enough. */
  async #reap(query: Query, once: boolean): Promise<void> {
    const rows = await query(
      `select node_no, expires_at < now() as is_frozen, pg_try_advisory_xact_lock($2, node_no) as is_unlocked, follows
       from workers where node_no <> $1`,
      this.node_no,
      this.#lock,
    );
    this.#listener.peers(rows.length, rows.filter(({ follows }) => follows === true).length);
    const suspects = rows
      .map((row) => ({
        node_no: Number(row["node_no"]),
        is_frozen: row["is_frozen"] === true,
        is_unlocked: row["is_unlocked"] === true,
      }))
      .filter(({ is_frozen, is_unlocked }) => is_frozen || is_unlocked);
    const dead = suspects.filter(({ node_no, is_frozen }) => once || is_frozen || this.#suspects.has(node_no)); // MEMBERS-2
    this.#suspects = new Set(suspects.map(({ node_no }) => node_no));
    // One that is already gone is freed by another that noticed at the same time.
    for (const { node_no } of dead) this.#free(await query(FREE_DEAD, node_no));
    if (dead.length > 0) await this.#updateShare(query);
  }

  /** These processes' running sessions are free; the others follow. If this process dies meanwhile, they are orphans (MEMBERS-4). */
  #free(gone: Row[]): void {
    if (gone.length === 0) return;
    for (const row of gone) this.#toFree.add(nodeOf(row));
    this.#listener.freed();
  }

  async #freeOthers(query: Query): Promise<void> {
    for (const node_no of this.#toFree)
      for (let times = 0; times < FREED_A_TICK && !this.#stopped; times++) {
        const [row] = await query(FREE_OTHERS, node_no);
        const count = Number(row?.["count"]);
        if (count > 0) this.#listener.freed();
        if (count < FREED_AT_ONCE) {
          this.#toFree.delete(node_no);
          break;
        }
      }
  }

  /** Returns whether there are sessions without an owner. */
  async #updateShare(query: Query): Promise<boolean> {
    const [row] = await query(SHARING, this.node_no);
    this.#others = Number(row?.["others"]);
    this.#share = this.#others === 0 ? Number.POSITIVE_INFINITY : Math.ceil(Number(row?.["live"]) / (this.#others + 1));
    return row?.["has_free"] === true;
  }
}

const nodeOf = (row: Row): number => Number(row["node_no"]);

export type HeartbeatOrder = {
  url: string;
  node_no: number;
  lock: number;
  name: string;
  lease_ms: number;
  /** A counter that the main thread increments while its event loop turns. */
  turns: Int32Array<SharedArrayBuffer>;
  /** The program's compile cache, if it has one: the thread uses the same. */
  compile_cache: string | undefined;
};
export type HeartbeatReport =
  | { kind: "joined" }
  /** Before it joined: the first connection's failure. */
  | { kind: "failed"; error: Failure & { message: string } }
  | { kind: "taken_for_dead" }
  | { kind: "stopped" };

const TURN_MS = 200;
const AGAIN_MS = 100;
/** How long `stopRenewing` waits for a renewal that is under way, in milliseconds. */
const LAST_RENEWAL_MS = 2000;
/** One statement a second needs little. */
const RESOURCES = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

/**
 * Signals that this process is alive, from its own thread and over its own connection: a step that blocks the event loop for longer
 * than the lease then does not cost the process its sessions.
 *
 * HEARTBEAT-1  The process is in `workers` while the thread holds the advisory lock, which ends with its connection, and renews the
 *              lease.
 * HEARTBEAT-2  An orderly stop ends the renewals first, then the process removes itself from the list, and the lock goes last: what
 *              it releases must not look like the remains of a dead process.
 */
export class Heartbeat {
  readonly #order: HeartbeatOrder;
  readonly #onTakenForDead: () => void;
  readonly #joined = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<void>();
  readonly #turning: NodeJS.Timeout;
  #thread: Worker | undefined;
  #isClosing = false;

  constructor(order: Omit<HeartbeatOrder, "turns" | "compile_cache">, onTakenForDead: () => void) {
    const turns = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    this.#order = { ...order, turns, compile_cache: getCompileCacheDir() };
    this.#onTakenForDead = onTakenForDead;
    this.#turning = setInterval(() => Atomics.add(turns, 0, 1), TURN_MS).unref();
    this.#joined.promise.catch(() => {}); // Whoever waits for it is told.
  }

  /** Throws if the first connection fails; later it reconnects by itself. */
  start(): Promise<void> {
    this.#spawn();
    return this.#joined.promise;
  }

  /** HEARTBEAT-2. */
  async stopRenewing(): Promise<void> {
    this.#isClosing = true;
    if (!this.#thread) return;
    this.#thread.postMessage("stop");
    const late = setTimeout(() => this.#stopped.resolve(), LAST_RENEWAL_MS);
    await this.#stopped.promise;
    clearTimeout(late);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#turning);
    await this.#thread?.terminate();
  }

  #spawn(): void {
    const thread = new Worker(new URL("./heartbeat-thread.ts", import.meta.url), {
      workerData: this.#order,
      resourceLimits: RESOURCES,
    });
    this.#thread = thread;
    thread.on("message", (report: HeartbeatReport) => this.#heard(report));
    thread.on("error", (error: Error) => {
      process.emitWarning(error);
      this.#joined.reject(error);
    });
    thread.on("exit", () => {
      this.#stopped.resolve();
      if (!this.#isClosing) setTimeout(() => !this.#isClosing && this.#spawn(), AGAIN_MS);
    });
  }

  #heard(report: HeartbeatReport): void {
    switch (report.kind) {
      case "joined":
        return this.#joined.resolve();
      case "failed":
        this.#isClosing = true;
        return this.#joined.reject(Object.assign(new Error(report.error.message), report.error));
      case "taken_for_dead":
        return this.#onTakenForDead();
      case "stopped":
        return this.#stopped.resolve();
    }
    report satisfies never;
  }
}
