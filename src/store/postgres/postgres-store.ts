import { hostname } from "node:os";
import { Emitter } from "../../concurrency/emitter.ts";
import type { Action } from "../../domain/action.ts";
import type { CommittedEvent, StepDelta } from "../../domain/event.ts";
import type { GuidanceAmount } from "../../domain/guidance-amount.ts";
import { newId, now } from "../../domain/ids.ts";
import { isLive, type Session } from "../../domain/session.ts";
import { CommitQueue, WORTH_A_SYNC } from "../commit-queue.ts";
import { CommitFeed, channelFor, follow, type ReaderBudget } from "../follow.ts";
import { OwnedSessions, type Wakes } from "../owned-sessions.ts";
import type { Schema } from "../schema.ts";
import type * as port from "../store.ts";
import { Lifetime } from "../store-errors.ts";
import { ActionClaims } from "./action-claims.ts";
import { BatchStatements, type EncodedBatch } from "./batch-statement.ts";
import { ChangeRelay } from "./change-relay.ts";
import { Pool, retryRead, toStoreError } from "./connections.ts";
import { GroupWriter, type WriteFeedback } from "./group-writer.ts";
import { Heartbeat, Membership, type MembershipTuning } from "./membership.ts";
import { NotificationRouter } from "./notification-router.ts";
import { NotifyConnection, SharedLocks } from "./notify-connection.ts";
import { PostgresReads } from "./postgres-reads.ts";
import { PostgresWebhooks } from "./postgres-webhooks.ts";
import { SessionClaims } from "./session-claims.ts";
import { ListUpkeep, prune, type UpkeepTuning } from "./session-lists.ts";
import { Tables } from "./tables.ts";

/** One group is written while the answers to the other are processed. */
const WRITERS = 2;
const LARGEST_GROUP = { batches: 64, characters: 8 * 1024 * 1024 };
/** Beside a group of up to this size, the next commit does not wait. */
const SMALL_GROUP = 8;
/** Milliseconds after which a commit that was not sent, because the server does not answer, fails. */
const LONGEST_WAIT_MS = 5000;
/** How often followed sessions and conversations are checked, in milliseconds, in case a notification was lost. */
const LOOK_THROUGH_MS = 3000;
/** How long a process still counts as following after its last follower left, in milliseconds. */
const FOLLOWS_ON_MS = 10_000;
/** When they are checked after this process begins to follow, in milliseconds. */
const FIRST_LOOKS_MS = [100, 500, 1000];
/** Ids in one notification, whose size is limited. */
const RELEASED_AT_ONCE = 10;
/** Changes are read from this much before the connection was lost, because clocks differ. */
const CLOCK_SLACK_MS = 5000;

const QUEUE_TUNING = {
  most: LARGEST_GROUP,
  // Beside a small group at once; beside a large one only if enough commits wait.
  isWorthGroup: (waiting: number, under_way: number): boolean =>
    under_way <= SMALL_GROUP || waiting >= Math.max(WORTH_A_SYNC, under_way / 2),
  schedule: setImmediate,
  isEager: true,
  longest_wait_ms: LONGEST_WAIT_MS,
};

/** The store that many processes share. The database keeps every promise; what is in memory only saves work. */
export class PostgresStore extends PostgresReads implements port.Store {
  readonly kind = "postgres";
  readonly webhooks: PostgresWebhooks;
  readonly #pool: Pool;
  readonly #statements: BatchStatements;
  readonly #writers: readonly GroupWriter[];
  readonly #queue: CommitQueue<EncodedBatch, WriteFeedback>;
  readonly #connection: NotifyConnection;
  readonly #membership: Membership;
  readonly #heartbeat: Heartbeat;
  readonly #owned = new OwnedSessions();
  readonly #claims: SessionClaims;
  readonly #actions: ActionClaims;
  readonly #locks: SharedLocks;
  readonly #upkeep: ListUpkeep;
  readonly #feed = new CommitFeed();
  readonly #relay: ChangeRelay;
  readonly #router: NotificationRouter;
  readonly #work = new Emitter();
  readonly #free = new Emitter();
  readonly #surplus = new Emitter<[session_ids: string[], count: number]>();
  readonly #deltas = new Emitter<[delta: StepDelta]>();
  readonly #releases = new Emitter<[release: port.SessionRelease]>();
  readonly #lifetime = new Lifetime();
  readonly #lookThrough: NodeJS.Timeout;
  /** The worker that claims actions here. */
  #actionWorker: string | null = null;
  #downSince = now();
  #followedUntil = 0;

  constructor(
    url: string,
    place: { node_no: number; lock: number; channel: string },
    schema: Schema,
    tuning: MembershipTuning & UpkeepTuning & { pool_size: number },
  ) {
    const { node_no, lock } = place;
    const pool = new Pool(url, tuning.pool_size);
    const tables = new Tables(schema);
    super(pool, tables);
    this.#pool = pool;
    this.webhooks = new PostgresWebhooks(pool, tables, node_no);
    this.#statements = new BatchStatements(tables);
    this.#writers = Array.from(
      { length: WRITERS },
      (_, writer_no) => new GroupWriter(url, { node_no, writer_no }, this.#statements),
    );
    this.#queue = new CommitQueue({ writers: this.#writers, ...QUEUE_TUNING });
    this.#upkeep = new ListUpkeep(pool, tuning);
    this.#claims = new SessionClaims(pool, node_no, this, this.#owned);
    this.#membership = this.#joinMembership(place, tuning);
    this.#heartbeat = new Heartbeat({ url, node_no, lock, name: processName(), lease_ms: tuning.lease_ms }, () => {
      // Others have freed what this process owned.
      this.#membership.wasTakenForDead();
      this.#owned.forget(this.#owned.ids);
      this.#lookForUnknown();
    });
    this.#actions = new ActionClaims(pool, tables, node_no, {
      owns: (session_id) => this.#owned.get(session_id) !== null,
      others: () => this.#membership.others,
      taken: (worker, session_ids) => this.#claims.adopt(worker, session_ids),
      wake: () => this.#work.emit(),
    });
    this.#connection = new NotifyConnection(url, place, {
      received: (notifications) => this.#router.received(notifications),
      up: () => {
        this.#membership.isBack();
        this.#isBack();
      },
      down: () => {
        this.#downSince = now();
      },
    });
    this.#locks = new SharedLocks(this.#connection, lock);
    this.#relay = new ChangeRelay(this, this.#feed);
    this.#router = new NotificationRouter({
      connection: this.#connection,
      relay: this.#relay,
      actions: this.#actions,
      locks: this.#locks,
      work: this.#work,
      free: this.#free,
      deltas: this.#deltas,
      releases: this.#releases,
    });
    this.#lookThrough = setInterval(() => void this.#relay.lookThrough().catch(() => {}), LOOK_THROUGH_MS).unref();
  }

  #joinMembership(place: { node_no: number; lock: number }, tuning: MembershipTuning): Membership {
    return new Membership(place, tuning, {
      freed: () => {
        this.#connection.notify({ kind: "free" });
        this.#freed();
      },
      free: () => this.#free.emit(),
      peers: (count, following) => {
        this.#connection.hasPeers = count > 0;
        this.#connection.hasFollowers = following > 0;
      },
      follows: () => this.#follows,
      owned: () => this.#owned.size,
      surplus: (count) => this.#surplus.emit(shuffled(this.#owned.ids), count),
    });
  }

  async start(): Promise<void> {
    try {
      await this.#heartbeat.start();
      await Promise.all(this.#writers.map((writer) => writer.register()));
      // A failure here shows up again with the first group.
      for (const writer of this.#writers) void writer.rehearse().catch(() => {});
      await this.#connection.start();
      this.#membership.start(this.#connection.query);
      this.#upkeep.start();
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  async commit(requested: port.Batch): Promise<port.CommitOutcome> {
    this.#lifetime.requireOpen();
    const batch = this.#membership.isOnlyWorker ? assignNewSession(requested, this.#actionWorker) : requested;
    const planned = this.#owned.plan(batch);
    if (planned.kind === "fenced") return planned;
    const { plans } = planned;
    const { actions = [] } = batch;
    const encoded = this.#statements.encode(batch, plans, this.#actions);
    for (const plan of plans) plan.begun();
    try {
      const written = this.#queue.commit(encoded, (feedback) => {
        for (const plan of plans) plan.committed();
        this.#router.committed(batch, plans, feedback);
        this.webhooks.committed(plans);
      });
      const outcome = await (actions.length > 0 ? this.#actions.during(actions, written) : written);
      if (outcome.kind === "fenced") {
        for (const { write } of plans) if (write.kind === "update") this.#owned.forgetFenced(write);
        this.#actions.dropped(actions);
        this.#lookForUnknown();
      }
      return outcome;
    } finally {
      for (const plan of plans) plan.ended();
    }
  }

  async claimSessions({ worker, limit }: { worker: string; limit: number }): Promise<port.OwnedSession[]> {
    this.#lifetime.requireOpen();
    const room = await this.#room().catch((error: unknown) => {
      throw toStoreError(error);
    });
    return this.#claims.claimFree(worker, Math.min(limit, room));
  }

  /** How many more sessions this process, from now on a worker, should own. */
  async #room(): Promise<number> {
    const { query } = this.#connection;
    await this.#membership.takeSessions(query);
    return this.#membership.room(query);
  }

  async claimSession({
    worker,
    session_id,
  }: {
    worker: string;
    session_id: string;
  }): Promise<port.OwnedSession | null> {
    const owned = this.#owned.get(session_id);
    return owned?.owner.worker === worker ? owned : this.#claims.claim(worker, session_id);
  }

  lastOwnerLives(session_id: string): Promise<boolean> {
    return this.#claims.lastOwnerLives(session_id);
  }

  get wakes(): Wakes {
    return this.#owned.wakes;
  }

  cachedSession(session_id: string): Session | null {
    return this.#owned.cached(session_id);
  }

  async releaseSessions({ worker, session_ids }: { worker: string; session_ids?: string[] }): Promise<void> {
    if (!session_ids) this.#actionWorker = null;
    // From now on the owner's commits are refused; those under way are finished before the next owner starts.
    const released = session_ids ?? this.#owned.ownedBy(worker);
    this.#owned.forget(released.filter((id) => this.#owned.isOwnedBy(id, worker)));
    await this.#queue.drained();
    await this.#claims.release(worker, session_ids, () => {
      this.#membership.mayHaveFree();
      this.#connection.notify({ kind: "free" });
    });
    this.#actions.mayHave(released);
    this.#work.emit();
  }

  claimActions(claim: { worker: string; limit: number }): Promise<Action[]> {
    this.#actionWorker = claim.worker;
    return this.#actions.claim(claim);
  }

  claimFollowing(claimed: Action, most: GuidanceAmount): Promise<Action[]> {
    return this.#actions.claimFollowing(claimed, most);
  }

  onWork(listener: () => void): () => void {
    return this.#work.listen(listener);
  }

  onFreeSessions(listener: () => void): () => void {
    return this.#free.listen(listener);
  }

  onSurplus(listener: (session_ids: string[], count: number) => void): () => void {
    return this.#surplus.listen(listener);
  }

  follow(topic: port.Topic, signal: AbortSignal, budget?: ReaderBudget): AsyncIterable<CommittedEvent> {
    // Rows are read only once it is noted where the session or conversation stands: one between the two would reach nobody.
    const begun = this.#relay.begin(channelFor(topic)).catch(() => {});
    if (!this.#follows) this.#beginToFollow();
    const until = AbortSignal.any([signal, this.#lifetime.signal]);
    const retry = <Row>(read: () => Promise<Row[]>): Promise<Row[]> => begun.then(() => retryRead(read, until));
    const retrying = {
      listSteps: (filter: port.StepFilter) => retry(() => this.listSteps(filter)),
      listMessages: (filter: port.MessageFilter) => retry(() => this.listMessages(filter)),
      messageNumber: async (id: string) => (await retry(async () => [await this.messageNumber(id)]))[0] ?? null,
    };
    return follow(retrying, this.#feed, topic, until, budget);
  }

  publishDelta(delta: StepDelta): void {
    this.#connection.notifyDelta(delta);
  }

  onDelta(listener: (delta: StepDelta) => void): () => void {
    return this.#deltas.listen(listener);
  }

  publishRelease({ session_ids = [], ...release }: port.SessionRelease): void {
    if (release.all || release.agent_id !== undefined) this.#connection.notify({ kind: "release", release });
    for (let at = 0; at < session_ids.length; at += RELEASED_AT_ONCE) {
      const some = session_ids.slice(at, at + RELEASED_AT_ONCE);
      this.#connection.notify({ kind: "release", release: { session_ids: some } });
    }
  }

  onRelease(listener: (release: port.SessionRelease) => void): () => void {
    return this.#releases.listen(listener);
  }

  withLock<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return this.#locks.withLock(name, work, this.#lifetime.signal);
  }

  prune(before: string): Promise<port.Pruned> {
    return prune(this.#pool, before);
  }

  prepareToStop(): void {
    this.#pool.prepareToStop();
    for (const writer of this.#writers) writer.prepareToStop();
  }

  close(): Promise<void> {
    return this.#lifetime.close(async () => {
      clearInterval(this.#lookThrough);
      this.#actions.stop();
      for (const emitter of [this.#work, this.#free, this.#surplus, this.#deltas, this.#releases, this.webhooks.due])
        emitter.clear();
      this.prepareToStop();
      await Promise.all([this.#membership.stop(), this.#upkeep.stop()]);
      await this.#heartbeat.stopRenewing();
      await this.#queue.drained();
      // If the server is out of reach, the others notice that this process is gone.
      if (this.#connection.isUp) await this.#claims.releaseAll().catch(() => {});
      this.#connection.notify({ kind: "free" });
      await this.#end();
    });
  }

  async #end(): Promise<void> {
    const parts = [this.#connection, this.#pool, ...this.#writers, this.#heartbeat];
    await Promise.all(parts.map((part) => part.close()));
  }

  /** Sessions that the database has as ours and that nobody here knows are released and claimed again. */
  #lookForUnknown(): void {
    this.#claims.doubt();
    this.#free.emit();
  }

  #freed(): void {
    this.#actions.lookThrough();
    this.#free.emit();
    this.#work.emit();
  }

  /** A process that followed a moment ago is likely to follow again. */
  get #follows(): boolean {
    if (this.#feed.channels.size > 0) this.#followedUntil = performance.now() + FOLLOWS_ON_MS;
    return performance.now() < this.#followedUntil;
  }

  /** From now on the others notify this process; what they committed before they knew is read. */
  #beginToFollow(): void {
    this.#followedUntil = performance.now() + FOLLOWS_ON_MS;
    void this.#membership
      .follow(this.#connection.query)
      .then(() => this.#connection.notify({ kind: "hello", follows: true }))
      .catch(() => {});
    for (const ms of FIRST_LOOKS_MS) setTimeout(() => void this.#relay.lookThrough().catch(() => {}), ms).unref();
  }

  /** The connection is up, for the first time or again. */
  #isBack(): void {
    this.#connection.notify({ kind: "hello", follows: this.#follows });
    this.#freed();
    const since = new Date(Date.parse(this.#downSince) - CLOCK_SLACK_MS).toISOString();
    void this.#relay.catchUp(since).catch(() => {});
  }
}

/** Gives a new session whose action is still pending to the worker at once, so that it need not be claimed. */
function assignNewSession(batch: port.Batch, worker: string | null): port.Batch {
  const [write, more] = batch.sessions ?? [];
  if (worker === null || write?.kind !== "create" || more || write.worker !== null) return batch;
  const { created_action_id, status } = write.session;
  const waits = batch.actions?.some(({ action_id, processed }) => action_id === created_action_id && !processed);
  return waits && isLive(status) ? { ...batch, sessions: [{ ...write, worker }] } : batch;
}

function shuffled(ids: string[]): string[] {
  for (let at = ids.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1));
    [ids[at], ids[other]] = [ids[other] as string, ids[at] as string];
  }
  return ids;
}

const processName = (): string => `${hostname()}:${process.pid}:${newId().slice(-6).toLowerCase()}`;
