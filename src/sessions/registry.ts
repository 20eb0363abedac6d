import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { EverstepError } from "../domain/errors.ts";
import type { SessionSummary } from "../domain/session-summary.ts";
import type { Catalog } from "../monikers/catalog.ts";
import { type Moniker, StepError } from "../monikers/moniker.ts";
import type { ListPlace, OwnedSession } from "../store/store.ts";
import type { RunnerDependencies } from "./runner-dependencies.ts";
import { SessionRunner } from "./session-runner.ts";

/** How many sessions that rest keep their runner. A runner is made again when it is needed. */
const MOST_IDLE = 1000;
const CLAIM_PAGE = 500;
const STORE_RETRY_MS = 500;

/**
 * The sessions that this worker owns. A session that works has a runner; one that rests needs none.
 *
 * REGISTRY-1  A session has one runner at a time, whoever asks for it and wherever its row comes from: a row is adopted only if
 *             no runner of the same ownership exists and none is being acquired. One of an older ownership ends first.
 */
export class SessionRegistry {
  readonly #worker: string;
  readonly #catalog: Catalog;
  readonly #dependencies: RunnerDependencies;
  readonly #runners = new Map<string, SessionRunner>();
  readonly #acquiring = new Map<string, Promise<SessionRunner | null>>();
  /** Sessions whose runner is lent out, with how many times. */
  readonly #lent = new Map<string, number>();
  readonly #handingOver = new Set<Promise<void>>();
  #unlisten = () => {};
  #rehydrating: Promise<number> | undefined;
  #again = false;
  #stopped = false;

  constructor(worker: string, catalog: Catalog, dependencies: RunnerDependencies) {
    this.#worker = worker;
    this.#catalog = catalog;
    this.#dependencies = dependencies;
  }

  /** The runner that a session has now, if any. */
  peek(session_id: string): SessionRunner | null {
    const runner = this.#runners.get(session_id);
    return runner && !runner.isOver ? runner : null;
  }

  /**
   * Lends the runner of a session, whatever its status; null where the session is unknown or another worker has it.
   * It is not forgotten while it is lent: a session must never have two (REGISTRY-1).
   */
  async withRunner<Result>(
    session_id: string,
    work: (runner: SessionRunner | null) => Promise<Result>,
  ): Promise<Result> {
    this.#lent.set(session_id, (this.#lent.get(session_id) ?? 0) + 1);
    const present = this.peek(session_id);
    let runner = present;
    try {
      runner ??= await this.#acquire(session_id);
      return await work(runner);
    } finally {
      // Whatever became of the action, a session that was taken up for it goes on.
      if (!present) runner?.wake();
      const left = (this.#lent.get(session_id) ?? 1) - 1;
      if (left > 0) this.#lent.set(session_id, left);
      else this.#lent.delete(session_id);
      this.#forgetIdle();
    }
  }

  async #acquire(session_id: string): Promise<SessionRunner | null> {
    let acquiring = this.#acquiring.get(session_id);
    if (!acquiring) {
      acquiring = this.#claim(session_id).finally(() => this.#acquiring.delete(session_id));
      this.#acquiring.set(session_id, acquiring);
    }
    return acquiring;
  }

  /** Takes up live sessions that nobody owns, now and whenever there are some. Those with work go on at once. */
  async rehydrate(): Promise<number> {
    const { store } = this.#dependencies;
    const unlisten = [
      store.onFreeSessions?.(() => this.#takeUp()),
      store.onSurplus?.((session_ids) => this.#handOver(session_ids)),
    ];
    this.#unlisten = () => {
      for (const stop of unlisten) stop?.();
    };
    this.#rehydrating = this.#rehydrate();
    return this.#rehydrating.catch((error: unknown) => {
      if (!(error instanceof EverstepError)) throw error;
      this.#takeUpLater(); // The store is out of reach.
      return 0;
    });
  }

  #takeUp(): void {
    this.#again = true;
    const before = this.#rehydrating?.catch(() => {}) ?? Promise.resolve();
    this.#rehydrating = before.then(() => {
      if (!this.#again || this.#stopped) return 0;
      this.#again = false;
      return this.#rehydrate();
    });
    // The store is out of reach: what it claimed all the same is known after the next claim only.
    this.#rehydrating.catch(() => this.#takeUpLater());
  }

  #takeUpLater(): void {
    setTimeout(() => this.#takeUp(), STORE_RETRY_MS).unref();
  }

  /** Lets their running steps finish, then gives them up. One that an action works on right now stays. */
  #handOver(session_ids: string[]): void {
    const free = session_ids.filter((id) => !this.#lent.has(id) && !this.#acquiring.has(id));
    const [busy, resting] = [[] as string[], [] as string[]];
    for (const id of free) (this.#runners.get(id)?.isIdle === false ? busy : resting).push(id);
    const work = Promise.all([resting, ...busy.map((id) => [id])].map((ids) => this.#giveUp(ids))).then(() => {
      this.#handingOver.delete(work);
    });
    this.#handingOver.add(work);
  }

  async #giveUp(session_ids: string[]): Promise<void> {
    const runners = session_ids.flatMap((id) => this.#runners.get(id) ?? []);
    for (const runner of runners) runner.shutDown(false);
    await Promise.all(runners.map((runner) => runner.quiet()));
    for (const runner of runners) {
      const { session_id } = runner.session;
      // Only this one: the session may have been given up and taken again meanwhile.
      if (this.#runners.get(session_id) === runner) this.#runners.delete(session_id);
    }
    const { store } = this.#dependencies;
    while (session_ids.length > 0 && !this.#stopped) {
      try {
        return await store.releaseSessions({ worker: this.#worker, session_ids });
      } catch {
        // Out of reach: nobody runs these until they are given up.
        await wait(STORE_RETRY_MS);
      }
    }
  }

  async #rehydrate(): Promise<number> {
    let count = 0;
    for (;;) {
      const claimed = await this.#dependencies.store.claimSessions({ worker: this.#worker, limit: CLAIM_PAGE });
      if (this.#stopped) return count;
      for (const owned of claimed) this.#goOn(owned);
      this.#forgetIdle();
      count += claimed.length;
      if (claimed.length < CLAIM_PAGE) return count;
    }
  }

  /** A claimed session that has work takes it up. */
  #goOn(owned: OwnedSession): void {
    const { session_id, status } = owned.session;
    const isHeld = this.#dependencies.hold.holds(owned.session);
    if (status !== "stopping" && (status !== "running" || isHeld)) return;
    const acquiring = this.#acquiring.get(session_id);
    if (!acquiring) return this.#adopt(owned).wake();
    // REGISTRY-1. Who acquires it wakes it, unless they asked the store before it was claimed here.
    void acquiring
      .then(async (runner) => {
        if (!runner) await this.withRunner(session_id, async () => {});
      })
      .catch(() => this.#takeUpLater());
  }

  /** Looks again at sessions that run and were held until now. Answers how many of them go on here. */
  async goOnReleased(isReleased: (session: SessionSummary) => boolean): Promise<number> {
    const { store } = this.#dependencies;
    let count = 0;
    for (let after: ListPlace | undefined; !this.#stopped; ) {
      const { sessions: page } = await store.summarizeSessions({
        statuses: ["running"],
        limit: CLAIM_PAGE,
        offset: 0,
        ...(after && { after }),
      });
      for (const { session_id } of page.filter(isReleased))
        await this.withRunner(session_id, async (runner) => {
          if (runner) count += 1;
          runner?.wake();
        });
      const last = page.at(-1);
      if (!last || page.length < CLAIM_PAGE) break;
      after = { session_id: last.session_id, at: last.created_at };
    }
    return count;
  }

  /** From now on no step starts. */
  startNoMore(): void {
    this.#stopped = true;
    for (const runner of this.#runners.values()) runner.shutDown(false);
  }

  /** Lets running steps finish for a while, cuts the others short, and gives up every session. */
  async stop(grace_ms: number): Promise<void> {
    this.startNoMore();
    this.#unlisten();
    await this.#rehydrating?.catch(() => {});
    const runners = [...this.#runners.values()];
    const quiet = Promise.all(runners.map((runner) => runner.quiet()));
    const timer = setTimeout(() => {
      for (const runner of runners) runner.shutDown(true);
    }, grace_ms);
    await quiet;
    clearTimeout(timer);
    await Promise.all(this.#handingOver);
    await this.#dependencies.store.releaseSessions({ worker: this.#worker }).catch((error: unknown) => {
      // Out of reach: a worker that is gone owns nothing, however it went.
      if (!(error instanceof EverstepError)) throw error;
    });
  }

  async #claim(session_id: string): Promise<SessionRunner | null> {
    const owned = await this.#dependencies.store.claimSession({ worker: this.#worker, session_id });
    return owned && this.#adopt(owned);
  }

  /** REGISTRY-1. */
  #adopt(owned: OwnedSession): SessionRunner {
    const { session, owner } = owned;
    const present = this.peek(session.session_id);
    if (present?.epoch === owner.epoch) return present;
    present?.fence();
    const { moniker } = session;
    const currentMoniker = () => this.#catalog.get(moniker) ?? missingMoniker(moniker, this.#catalog);
    const runner = new SessionRunner(owned, currentMoniker, this.#dependencies);
    this.#runners.set(session.session_id, runner);
    if (this.#stopped) runner.shutDown(false);
    return runner;
  }

  /** A runner that was just made is idle too, so this comes after it has got its work. */
  #forgetIdle(): void {
    if (this.#runners.size <= MOST_IDLE) return;
    for (const [id, runner] of this.#runners) {
      if (this.#runners.size <= MOST_IDLE) return;
      if (runner.isIdle && !this.#lent.has(id)) this.#runners.delete(id);
    }
  }
}

/** Stands in for a moniker that this worker does not have, so that its sessions can still be stopped. */
const missingMoniker = (name: string, { awaited = [] }: Catalog): Moniker => ({
  name,
  kind: "finite",
  description: "",
  params: z.unknown(),
  step() {
    if (awaited.length === 0)
      throw new StepError("unknown_moniker", `no moniker is named ${name} here`, { retryable: false });
    const why = `no moniker is named ${name} here, and ${awaited.join(", ")} has not said yet what it has; see that it runs`;
    throw new StepError("remote_gone", why, { retryable: true, outage: true });
  },
});
