import { hostname } from "node:os";
import type { Action } from "../../domain/action.ts";
import type { CommittedEvent, StepDelta } from "../../domain/event.ts";
import { newId, now } from "../../domain/ids.ts";
import type { Session } from "../../domain/session.ts";
import { CommitFeed } from "../commit-feed.ts";
import { channelFor, follow } from "../follow.ts";
import type { GuidanceAmount } from "../guidance-amount.ts";
import { planSessions } from "../plan-sessions.ts";
import type { ReaderBudget } from "../reader-budget.ts";
import type * as port from "../store.ts";
import { ActionClaims } from "./action-claims.ts";
import { Bell } from "./bell.ts";
import { withOwner } from "./births.ts";
import { CommitQueue } from "./commit-queue.ts";
import { Pool } from "./connections.ts";
import { encode } from "./encoded-batch.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Link } from "./link.ts";
import { ListUpkeep, type UpkeepTuning } from "./list-upkeep.ts";
import { Membership, type MembershipTuning } from "./membership.ts";
import { NewsDesk } from "./news-desk.ts";
import { OwnedSessions } from "./owned-sessions.ts";
import { patiently } from "./patiently.ts";
import { PostgresReads } from "./postgres-reads.ts";
import { Relay } from "./relay.ts";
import { SessionClaims } from "./session-claims.ts";
import { SharedLocks } from "./shared-locks.ts";
import { closed, toStoreError } from "./store-errors.ts";

/** How often what is followed is looked through for news that was lost, in milliseconds. */
const LOOK_THROUGH_MS = 3000;
/** How long a process counts as one that follows after nobody in it does, in milliseconds. */
const FOLLOWS_ON_MS = 10_000;
/** When it is looked through after this process begins to follow, in milliseconds. */
const FIRST_LOOKS_MS = [100, 500, 1000];
/** News is asked for from a little before the connection was lost: clocks differ. */
const CLOCK_SLACK_MS = 5000;

/** The store that many processes share: every promise is kept by the database, and memory only saves work. */
export class PostgresStore extends PostgresReads implements port.Store {
  readonly kind = "postgres";
  readonly #pool: Pool;
  readonly #queue: CommitQueue;
  readonly #link: Link;
  readonly #membership: Membership;
  readonly #heartbeat: Heartbeat;
  readonly #owned = new OwnedSessions();
  readonly #claims: SessionClaims;
  readonly #actions: ActionClaims;
  readonly #locks: SharedLocks;
  readonly #upkeep: ListUpkeep;
  readonly #feed = new CommitFeed();
  readonly #relay: Relay;
  readonly #news: NewsDesk;
  readonly #work = new Bell();
  readonly #free = new Bell();
  readonly #surplus = new Bell<[session_ids: string[]]>();
  readonly #deltas = new Bell<[delta: StepDelta]>();
  readonly #ending = new AbortController();
  readonly #lookThrough: NodeJS.Timeout;
  /** Who works on actions here. */
  #taker: string | null = null;
  #downSince = now();
  #followedUntil = 0;
  #closing: Promise<void> | undefined;

  constructor(
    url: string,
    place: { node_no: number; lock: number; channel: string },
    tuning: MembershipTuning & UpkeepTuning & { pool_size: number },
  ) {
    const { node_no } = place;
    const pool = new Pool(url, tuning.pool_size);
    super(pool);
    this.#pool = pool;
    this.#queue = new CommitQueue(url, node_no);
    this.#upkeep = new ListUpkeep(pool, tuning);
    this.#claims = new SessionClaims(this.#pool, node_no, this.reads.sessions, this.#owned);
    this.#membership = new Membership(place, tuning, {
      freed: () => {
        this.#link.tell({ kind: "free" });
        this.#freed();
      },
      free: () => this.#free.ring(),
      peers: (count, following) => {
        this.#link.hasPeers = count > 0;
        this.#link.hasFollowers = following > 0;
      },
      follows: () => this.#follows,
      surplus: (count) => this.#surplus.ring(this.#owned.randomSome(count)),
    });
    const { lock } = place;
    this.#heartbeat = new Heartbeat({ url, node_no, lock, name: processName(), lease_ms: tuning.lease_ms }, () => {
      // Others freed what it owned.
      this.#membership.wasTakenForDead();
      this.#owned.forget([...this.#owned.ids]);
      this.#lookForUnknown();
    });
    this.#actions = new ActionClaims(this.#pool, node_no, {
      owns: (session_id) => this.#owned.get(session_id) !== null,
      others: () => this.#membership.others,
      taken: (worker, session_ids) => this.#claims.adopt(worker, session_ids),
      ring: () => this.#work.ring(),
    });
    this.#link = new Link(url, place, {
      news: (news) => this.#news.heard(news),
      up: () => {
        this.#membership.isBack();
        this.#isBack();
      },
      down: () => {
        this.#downSince = now();
      },
    });
    this.#locks = new SharedLocks(this.#link, place.lock);
    this.#relay = new Relay(this.reads, this.#feed);
    this.#news = new NewsDesk({
      link: this.#link,
      relay: this.#relay,
      actions: this.#actions,
      locks: this.#locks,
      work: this.#work,
      free: this.#free,
      deltas: this.#deltas,
    });
    this.#lookThrough = setInterval(() => void this.#relay.lookThrough().catch(() => {}), LOOK_THROUGH_MS).unref();
  }

  async start(): Promise<void> {
    try {
      await this.#heartbeat.start();
      await this.#queue.start();
      await this.#link.start();
      this.#membership.start(this.#link.query);
      this.#upkeep.start();
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  async commit(given: port.Batch): Promise<port.CommitOutcome> {
    if (this.#closing) throw closed();
    const batch = withOwner(given, this.#membership.isOnlyTaker ? this.#taker : null);
    const planned = planSessions(batch, (write, steps) => this.#owned.plan(write, steps));
    if (planned.kind === "fenced") return planned;
    const { plans } = planned;
    const encoded = encode(batch, plans, this.#actions);
    const written = this.#queue.commit(encoded, (told) => {
      for (const plan of plans) plan.committed();
      this.#news.committed(batch, plans, told);
    });
    const outcome = await this.#actions.during(batch.actions ?? [], written);
    if (outcome.kind === "fenced") {
      for (const { write } of plans) if (write.kind === "update") this.#owned.lost(write);
      this.#actions.dropped(batch.actions ?? []);
      this.#lookForUnknown();
    }
    return outcome;
  }

  async claimSessions({ worker, limit }: { worker: string; limit: number }): Promise<port.OwnedSession[]> {
    if (this.#closing) throw closed();
    await this.#membership.takeSessions(this.#link.query).catch((error: unknown) => {
      throw toStoreError(error);
    });
    const room = Math.max(0, this.#membership.share - this.#owned.size);
    return this.#claims.claimFree(worker, Math.min(limit, room));
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

  cachedSession(session_id: string): Session | null {
    return this.#owned.get(session_id)?.session ?? null;
  }

  async releaseSessions({ worker, session_ids }: { worker: string; session_ids?: string[] }): Promise<void> {
    if (!session_ids) this.#taker = null;
    // From now on the owner's commits are refused; what it has under way is part of what the next owner starts from.
    const released = session_ids ?? this.#owned.ownedBy(worker);
    this.#owned.forget(released.filter((id) => this.#owned.isOwnedBy(id, worker)));
    await this.#queue.drained();
    if ((await this.#claims.release(worker, session_ids)) === 0) return;
    this.#link.tell({ kind: "free" });
    this.#actions.mayHave(released);
    this.#work.ring();
  }

  claimActions(claim: { worker: string; limit: number }): Promise<Action[]> {
    this.#taker = claim.worker;
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

  onSurplus(listener: (session_ids: string[]) => void): () => void {
    return this.#surplus.listen(listener);
  }

  follow(topic: port.Topic, signal: AbortSignal, budget?: ReaderBudget): AsyncIterable<CommittedEvent> {
    void this.#relay.begin(channelFor(topic)).catch(() => {});
    if (!this.#follows) this.#beginToFollow();
    const until = AbortSignal.any([signal, this.#ending.signal]);
    const patient = {
      listSteps: (filter: port.StepFilter) => patiently(() => this.listSteps(filter), until),
      listMessages: (filter: port.MessageFilter) => patiently(() => this.listMessages(filter), until),
      messageNumber: async (id: string) =>
        (await patiently(async () => [await this.reads.rows.messageNumber(id)], until))[0] ?? null,
    };
    return follow(patient, this.#feed, topic, until, budget);
  }

  publishDelta(delta: StepDelta): void {
    this.#link.tellDelta(delta);
  }

  onDelta(listener: (delta: StepDelta) => void): () => void {
    return this.#deltas.listen(listener);
  }

  withLock<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return this.#locks.withLock(name, work, this.#ending.signal);
  }

  prepareToStop(): void {
    this.#pool.prepareToStop();
    this.#queue.prepareToStop();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#ending.abort();
    clearInterval(this.#lookThrough);
    this.#actions.stop();
    for (const bell of [this.#work, this.#free, this.#surplus, this.#deltas]) bell.silence();
    this.prepareToStop();
    await Promise.all([this.#membership.stop(), this.#upkeep.stop()]);
    await this.#heartbeat.stopRenewing();
    await this.#queue.drained();
    // Where the server is out of reach the others notice that this process is gone.
    if (this.#link.isUp) await this.#claims.releaseAll().catch(() => {});
    this.#link.tell({ kind: "free" });
    await this.#end();
  }

  async #end(): Promise<void> {
    await Promise.all([this.#link, this.#pool, this.#queue, this.#heartbeat].map((one) => one.close()));
  }

  /** What the database has as ours and nobody here knows is given up and taken anew: an action or a claim was lost, not the session. */
  #lookForUnknown(): void {
    this.#claims.doubt();
    this.#free.ring();
  }

  #freed(): void {
    this.#actions.lookThrough();
    this.#free.ring();
    this.#work.ring();
  }

  /** Who followed a moment ago is likely to follow again. */
  get #follows(): boolean {
    if (this.#feed.channels.size > 0) this.#followedUntil = performance.now() + FOLLOWS_ON_MS;
    return performance.now() < this.#followedUntil;
  }

  /** Others tell from now on; what they committed before they heard of it is looked for. */
  #beginToFollow(): void {
    this.#followedUntil = performance.now() + FOLLOWS_ON_MS;
    void this.#membership
      .follow(this.#link.query)
      .then(() => this.#link.tell({ kind: "hello", follows: true }))
      .catch(() => {});
    for (const ms of FIRST_LOOKS_MS) setTimeout(() => void this.#relay.lookThrough().catch(() => {}), ms).unref();
  }

  /** The link is up, for the first time or again. */
  #isBack(): void {
    this.#link.tell({ kind: "hello", follows: this.#follows });
    this.#freed();
    const since = new Date(Date.parse(this.#downSince) - CLOCK_SLACK_MS).toISOString();
    void this.#relay.catchUp(since).catch(() => {});
  }
}

const processName = (): string => `${hostname()}:${process.pid}:${newId().slice(-6).toLowerCase()}`;
