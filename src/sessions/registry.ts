import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { EverstepError } from "../domain/errors.ts";
import type { SessionSummary } from "../domain/session-summary.ts";
import type { Catalog } from "../monikers/catalog.ts";
import { type Moniker, StepError } from "../monikers/moniker.ts";
import type { ListPlace, OwnedSession } from "../store/store.ts";
import type { RunnerDependencies } from "./runner-dependencies.ts";
import { SessionRunner } from "./session-runner.ts";

/** How many idle sessions keep their runner. A runner is recreated when it is needed. */
const MOST_IDLE = 1000;
const CLAIM_PAGE = 500;
const STORE_RETRY_MS = 500;

/**
 * The sessions that this worker owns. A session at work has a runner; an idle one needs none.
 *
 * REGISTRY-1  A session has at most one runner, whoever asks for it and wherever its row comes from: a row is adopted only if
 *             no runner of the same ownership exists or is being acquired. A runner of an older ownership ends first.
 */
export class SessionRegistry {
  readonly #worker: string;
  readonly #catalog: Catalog;
  readonly #dependencies: RunnerDependencies;
  readonly #runners = new Map<string, SessionRunner>();
  readonly #acquiring = new Map<string, Promise<SessionRunner | null>>();
  /** Reference counts of the runners in use by `withRunner`. */
  readonly #inUse = new Map<string, number>();
  /** Sessions that are being handed over to other workers: some take as long as their step. */
  readonly #handingOver = new Map<string, Promise<void>>();
  #unlisten = () => {};
  #rehydrating: Promise<number> | undefined;
  #again = false;
  #stopped = false;

  constructor(worker: string, catalog: Catalog, dependencies: RunnerDependencies) {
    this.#worker = worker;
    this.#catalog = catalog;
    this.#dependencies = dependencies;
  }

  /** The session's current runner, if any. */
  peek(session_id: string): SessionRunner | null {
    const runner = this.#runners.get(session_id);
    return runner && !runner.isOver ? runner : null;
  }

  /**
   * Calls `work` with the session's runner, whatever its status; with null if the session is unknown or another worker owns it.
   * The runner is not evicted meanwhile: a session must never have two (REGISTRY-1).
   */
  async withRunner<Result>(
    session_id: string,
    work: (runner: SessionRunner | null) => Promise<Result>,
  ): Promise<Result> {
    this.#inUse.set(session_id, (this.#inUse.get(session_id) ?? 0) + 1);
    const present = this.peek(session_id);
    let runner = present;
    try {
      runner ??= await this.#acquire(session_id);
      return await work(runner);
    } finally {
      // Whatever the outcome of the action, a session claimed for it continues.
      if (!present) runner?.wake();
      const left = (this.#inUse.get(session_id) ?? 1) - 1;
      if (left > 0) this.#inUse.set(session_id, left);
      else this.#inUse.delete(session_id);
      this.#evictIdle();
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

  /** Claims live sessions without an owner, now and whenever there are some. Those with work continue at once. */
  async rehydrate(): Promise<number> {
    const { store } = this.#dependencies;
    const unlisten = [
      store.onFreeSessions?.(() => this.#claimFree()),
      store.onSurplus?.((session_ids, count) => this.#handOver(session_ids, count)),
    ];
    this.#unlisten = () => {
      for (const stop of unlisten) stop?.();
    };
    this.#rehydrating = this.#rehydrate();
    return this.#rehydrating.catch((error: unknown) => {
      if (!(error instanceof EverstepError)) throw error;
      this.#claimFreeLater(); // The store is unreachable.
      return 0;
    });
  }

  #claimFree(): void {
    this.#again = true;
    const before = this.#rehydrating?.catch(() => {}) ?? Promise.resolve();
    this.#rehydrating = before.then(() => {
      if (!this.#again || this.#stopped) return 0;
      this.#again = false;
      return this.#rehydrate();
    });
    // The store is unreachable: whether it claimed any shows only at the next claim.
    this.#rehydrating.catch(() => this.#claimFreeLater());
  }

  #claimFreeLater(): void {
    setTimeout(() => this.#claimFree(), STORE_RETRY_MS).unref();
  }

  /**
   * Releases this many of the sessions, each once its running step has ended; those that are still on their way count. A session
   * that an action is working on stays.
   */
  #handOver(session_ids: string[], count: number): void {
    const staying = session_ids.filter((id) => !this.#handingOver.has(id));
    const missing = Math.max(0, count - (session_ids.length - staying.length));
    const free = staying.filter((id) => !this.#inUse.has(id) && !this.#acquiring.has(id)).slice(0, missing);
    const [busy, resting] = [[] as string[], [] as string[]];
    for (const id of free) (this.#runners.get(id)?.isIdle === false ? busy : resting).push(id);
    for (const ids of [resting, ...busy.map((id) => [id])]) {
      const released = this.#release(ids).then(() => {
        for (const id of ids) this.#handingOver.delete(id);
      });
      for (const id of ids) this.#handingOver.set(id, released);
    }
  }

  async #release(session_ids: string[]): Promise<void> {
    const runners = session_ids.flatMap((id) => this.#runners.get(id) ?? []);
    for (const runner of runners) runner.shutDown(false);
    await Promise.all(runners.map((runner) => runner.quiet()));
    for (const runner of runners) {
      const { session_id } = runner.session;
      // Only this runner: the session may have been released and claimed again meanwhile.
      if (this.#runners.get(session_id) === runner) this.#runners.delete(session_id);
    }
    const { store } = this.#dependencies;
    while (session_ids.length > 0 && !this.#stopped) {
      try {
        return await store.releaseSessions({ worker: this.#worker, session_ids });
      } catch {
        // Unreachable store: nobody runs these sessions until they are released.
        await wait(STORE_RETRY_MS);
      }
    }
  }

  async #rehydrate(): Promise<number> {
    let count = 0;
    for (;;) {
      const claimed = await this.#dependencies.store.claimSessions({ worker: this.#worker, limit: CLAIM_PAGE });
      if (this.#stopped) return count;
      for (const owned of claimed) this.#continue(owned);
      this.#evictIdle();
      count += claimed.length;
      if (claimed.length < CLAIM_PAGE) return count;
    }
  }

  /** A claimed session that has work continues. */
  #continue(owned: OwnedSession): void {
    const { session_id, status } = owned.session;
    const isHeld = this.#dependencies.hold.holds(owned.session);
    this.#endOlder(owned);
    if (status !== "stopping" && (status !== "running" || isHeld)) return;
    const acquiring = this.#acquiring.get(session_id);
    if (!acquiring) return this.#adopt(owned).wake();
    // REGISTRY-1. Whoever acquires it wakes it, unless their request reached the store before it was claimed here.
    void acquiring
      .then(async (runner) => {
        if (!runner) await this.withRunner(session_id, async () => {});
      })
      .catch(() => this.#claimFreeLater());
  }

  /** Wakes running sessions whose start hold was just lifted. Returns how many of them continue here. */
  async wakeReleased(isReleased: (session: SessionSummary) => boolean): Promise<number> {
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
  stopStarting(): void {
    this.#stopped = true;
    for (const runner of this.#runners.values()) runner.shutDown(false);
  }

  /** Lets running steps finish within the grace period, cuts the others short, and releases every session. */
  async stop(grace_ms: number): Promise<void> {
    this.stopStarting();
    this.#unlisten();
    await this.#rehydrating?.catch(() => {});
    const runners = [...this.#runners.values()];
    const quiet = Promise.all(runners.map((runner) => runner.quiet()));
    const timer = setTimeout(() => {
      for (const runner of runners) runner.shutDown(true);
    }, grace_ms);
    await quiet;
    clearTimeout(timer);
    await Promise.all(this.#handingOver.values());
    await this.#dependencies.store.releaseSessions({ worker: this.#worker }).catch((error: unknown) => {
      // Unreachable store: a worker that is gone owns nothing, released or not.
      if (!(error instanceof EverstepError)) throw error;
    });
  }

  async #claim(session_id: string): Promise<SessionRunner | null> {
    const owned = await this.#dependencies.store.claimSession({ worker: this.#worker, session_id });
    return owned && this.#adopt(owned);
  }

  /** REGISTRY-1. */
  #adopt(owned: OwnedSession): SessionRunner {
    const { session } = owned;
    this.#endOlder(owned);
    const present = this.peek(session.session_id);
    if (present) return present;
    const { moniker } = session;
    const currentMoniker = () => this.#catalog.get(moniker) ?? missingMoniker(moniker, this.#catalog);
    const runner = new SessionRunner(owned, currentMoniker, this.#dependencies);
    this.#runners.set(session.session_id, runner);
    if (this.#stopped) runner.shutDown(false);
    return runner;
  }

  /** REGISTRY-1. Also for an idle session: the runner's row dates from before others owned it. */
  #endOlder({ session: { session_id }, owner }: OwnedSession): void {
    const present = this.peek(session_id);
    if (present && present.epoch < owner.epoch) present.fence();
  }

  /** A new runner is idle too, so call this only after it got its work. */
  #evictIdle(): void {
    if (this.#runners.size <= MOST_IDLE) return;
    for (const [id, runner] of this.#runners) {
      if (this.#runners.size <= MOST_IDLE) return;
      if (runner.isIdle && !this.#inUse.has(id)) this.#runners.delete(id);
    }
  }
}

/** Placeholder for a moniker that this worker does not have, so that its sessions can still be stopped. */
const missingMoniker = (name: string, { awaited = [] }: Catalog): Moniker => ({
  name,
  kind: "finite",
  description: "",
  params: z.unknown(),
  step() {
    if (awaited.length === 0)
      throw new StepError("unknown_moniker", `no moniker is named ${name} here`, { retryable: false });
    const why = `no moniker is named ${name} here, and ${awaited.join(", ")} has not reported its monikers yet; check that it runs`;
    throw new StepError("remote_gone", why, { retryable: true, outage: true });
  },
});
