import { getCompileCacheDir } from "node:module";
import { Worker } from "node:worker_threads";
import { type Failure, isCollision, isOutOfReach } from "./connections.ts";
import type { NotifyConnection } from "./notify-connection.ts";
import { LIVE } from "./tables.ts";

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

/** What a process claimed at the very moment it was taken for dead belongs to nobody who is known. */
const FREE_ORPHANS = `with sessions as (
    update agent_state set owner = null, node_no = null, epoch = epoch + 1, owner_died = true, died_node_no = node_no,
           step_started_at = null
    where node_no is not null and node_no not in (select node_no from workers)),
  receipts as (delete from writers where node_no not in (select node_no from workers))
  update queue set claimed_by = null where claimed_by is not null and claimed_by not in (select node_no from workers)`;
const ORPHANS_MS = 10_000;
export type MembershipListener = {
  /** Sessions or actions of others were freed here. */
  freed: () => void;
  /** There are sessions that this process should take. */
  free: () => void;
  /** This process owns so many sessions more than its share. */
  surplus: (count: number) => void;
  /** How many other processes share the database, and how many of them follow what is committed. */
  peers: (count: number, following: number) => void;
  /** Whether this process follows what is committed. */
  follows: () => boolean;
};

/**
 * Which processes share the database.
 *
 * MEMBERS-1  A process lives while its heartbeat holds its advisory lock, which ends with its connection (a killed process), and renews
 *     its lease (a frozen one). Whoever notices that either is gone frees what it owned; the epoch grows, so that it can write
 *     nothing any more.
 * MEMBERS-2  A lock must be found free twice in a row, so that a connection that is just coming back counts as alive.
 * MEMBERS-3  Sessions are shared out evenly among those that take sessions, with some slack so that they do not wander.
 */
export class Membership {
  readonly node_no: number;
  readonly #lock: number;
  readonly #tuning: MembershipTuning;
  readonly #listener: MembershipListener;
  #suspects = new Set<number>();
  #takesSessions = false;
  #published = "";
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> | undefined;
  #stopped = false;
  #shareAt = 0;
  #orphansAt = 0;
  /** Just connected: the others may be about to come back as well. */
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

  /** How many sessions this process should own at most. */
  get share(): number {
    return this.#share;
  }

  /** Other processes that take sessions. */
  get others(): number {
    return this.#others;
  }

  /** Whether this process takes sessions and, as far as it knows, is the only one that does. */
  get isOnlyWorker(): boolean {
    return this.#takesSessions && this.#others === 0;
  }

  /** The connection is up again. */
  isBack(): void {
    this.#reapFrom = performance.now() + (this.#timer ? 4 * this.#tuning.tick_ms : 0);
  }

  /** This process was taken off the list, and is on it anew without what it had said of itself. */
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
    await this.#count(query);
  }

  /** Tells the others in the table, where they look, that this process follows. */
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
      if (this.#takesSessions && now >= this.#orphansAt) {
        this.#orphansAt = now + ORPHANS_MS;
        await query(FREE_ORPHANS);
      }
      if (this.#takesSessions && now >= this.#shareAt) {
        this.#shareAt = now + this.#tuning.share_ms;
        const { owned, free } = await this.#count(query);
        // MEMBERS-3: the slack.
        if (owned > this.#share + Math.max(1, this.#share * 0.1)) this.#listener.surplus(owned - this.#share);
        else if (free > 0 && owned < this.#share) this.#listener.free();
      }
    } catch (error) {
      // The connection comes back by itself, and the next tick with it.
      if (!isOutOfReach(error) && !isCollision(error)) process.emitWarning(error as Error);
    }
  }

  /** What others should know of this process, beside that it lives. */
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

  /** MEMBERS-1. At the start a lock that is free once is enough: nobody of this process's kind is coming back. */
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
    for (const { node_no } of dead) await this.#free(query, node_no);
    if (dead.length > 0) {
      await this.#count(query);
      this.#listener.freed();
    }
  }

  /** What is not there any more was freed by another who noticed at the same time. */
  async #free(query: Query, node_no: number): Promise<void> {
    await query(
      `with gone as (delete from workers where node_no = $1 returning node_no),
         sessions as (update agent_state set owner = null, node_no = null, epoch = epoch + 1, owner_died = true, died_node_no = node_no,
           step_started_at = null
           where node_no in (select node_no from gone))
       update queue set claimed_by = null where claimed_by in (select node_no from gone)`,
      node_no,
    );
  }

  /** Sets the share and answers how many live sessions this process owns, and how many are nobody's. */
  async #count(query: Query): Promise<{ owned: number; free: number }> {
    const [row] = await query(
      `select (select count(*)::integer from agent_state where status in (${LIVE})) as live,
         (select count(*)::integer from agent_state where node_no is null and status in (${LIVE})) as free,
         (select count(*)::integer from agent_state where node_no = $1 and status in (${LIVE})) as owned,
         (select count(*)::integer from workers where takes_sessions and node_no <> $1) as others`,
      this.node_no,
    );
    this.#others = Number(row?.["others"]);
    this.#share = this.#others === 0 ? Number.POSITIVE_INFINITY : Math.ceil(Number(row?.["live"]) / (this.#others + 1));
    return { owned: Number(row?.["owned"]), free: Number(row?.["free"]) };
  }
}

export type HeartbeatOrder = {
  url: string;
  node_no: number;
  lock: number;
  name: string;
  lease_ms: number;
  /** Counts up while the program's own thread turns. */
  turns: Int32Array<SharedArrayBuffer>;
  /** Where this program keeps what it compiled, if it does: the thread does the same. */
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
/** How long the end waits for a renewal that is under way, in milliseconds. */
const LAST_RENEWAL_MS = 2000;
/** One statement a second needs little. */
const RESOURCES = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

/**
 * Says that this process lives, from a thread of its own and over a connection of its own: a step that computes for longer than the
 * lease holds up everything else in the process, but does not lose it its sessions.
 *
 * HEARTBEAT-1  The process is in `workers` while the thread holds the advisory lock, which ends with its connection, and renews the
 *              lease.
 * HEARTBEAT-2  An orderly end stops the renewals first, lets the process take itself off the list, and gives up the lock last: what
 *              is released must not look like what a dead process left.
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

  /** Throws where the first connection fails; from then on it comes back by itself. */
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
