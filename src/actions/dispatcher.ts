import { setTimeout as wait } from "node:timers/promises";
import type { Action } from "../domain/action.ts";
import { carriesGuidance } from "../domain/action-type.ts";
import { EverstepError } from "../domain/errors.ts";
import { GUIDANCE_SLICE } from "../domain/guidance-amount.ts";
import { settle, type Verdict } from "../domain/receipt.ts";
import { isWholeSlice } from "../sessions/guidance-slice.ts";
import type { SessionRegistry } from "../sessions/registry.ts";
import { describeError } from "../sessions/retry.ts";
import type { SessionRunner } from "../sessions/session-runner.ts";
import type { CommitOutcome, Store } from "../store/store.ts";
import { isRefusal, MOST_REFUSALS } from "../store/store-errors.ts";
import { type Decision, decide, decideEnded } from "./decide.ts";

/** Actions under way at once, over all sessions. It only bounds memory: a pause that waits its turn here would let a step start. */
const MOST_UNDER_WAY = 2000;
const OWNED_ELSEWHERE_RETRY_MS = 200;
const LONGEST_RETRY_MS = 5000;
const STORE_RETRY_MS = 500;
/** Milliseconds for which guidance that no step takes soon is gathered. */
const GATHER_MS = 100;

/**
 * Claims actions and sees each to its end: claim, handle, settle.
 *
 * DISPATCH-1  Every action ends: a handler that throws ends it as failed, so does a store that keeps refusing to write it, and a
 *             store out of reach only delays it.
 * DISPATCH-2  What a handler decides and the end of its action are one commit. Guidance goes with what follows it in its
 *             session, a slice at a time, so that a flood costs few commits and no other request waits behind it.
 * DISPATCH-3  A request to a session that runs here need not wait in the queue: it is written together with its effect, unless
 *             that would overtake another.
 */
export class Dispatcher {
  readonly #store: Store;
  readonly #registry: SessionRegistry;
  readonly #worker: string;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #stopping = new AbortController();
  #unlisten = () => {};
  #isStarted = false;
  #claiming: Promise<void> | undefined;
  #again = false;

  constructor(store: Store, registry: SessionRegistry, worker: string) {
    this.#store = store;
    this.#registry = registry;
    this.#worker = worker;
  }

  start(): void {
    if (this.#stopping.signal.aborted) return;
    this.#isStarted = true;
    this.#unlisten = this.#store.onWork(() => this.#claim());
    this.#claim();
  }

  /** Claims nothing more and waits for what is under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#unlisten();
    while (this.#claiming || this.#underWay.size > 0) await Promise.all([this.#claiming, ...this.#underWay]);
  }

  #claim(): void {
    this.#again = true;
    this.#claiming ??= this.#claimReady().finally(() => {
      this.#claiming = undefined;
      if (this.#again && this.#underWay.size < MOST_UNDER_WAY && !this.#stopping.signal.aborted) this.#claim();
    });
  }

  async #claimReady(): Promise<void> {
    try {
      while (this.#again && !this.#stopping.signal.aborted) {
        this.#again = false;
        const limit = MOST_UNDER_WAY - this.#underWay.size;
        if (limit <= 0) break;
        for (const action of await this.#store.claimActions({ worker: this.#worker, limit }))
          this.#track(this.#handle(action));
      }
    } catch (error) {
      if (!(error instanceof EverstepError)) throw error;
      await this.#waitForStore();
      this.#again = true;
    }
  }

  #track(work: Promise<unknown>): void {
    const tracked = work.finally(() => {
      this.#underWay.delete(tracked);
      this.#claim();
    });
    this.#underWay.add(tracked);
  }

  /** DISPATCH-3. Answers whether the action was written; where not, it has to be put into the queue. */
  async applyAtOnce(action: Action): Promise<boolean> {
    // What is being written may wait for a store out of reach; who asks is answered before that.
    const isAtWork = this.#isStarted && !this.#stopping.signal.aborted;
    if (!isAtWork || !this.#registry.peek(action.session_id)?.isFree) return false;
    const applying = this.#registry.withRunner(
      action.session_id,
      async (runner) => runner !== null && (await this.#apply([action], runner, true)) === "committed",
    );
    this.#track(applying.catch(() => {}));
    return applying.catch((error: unknown) => {
      if (error instanceof EverstepError) throw error;
      return false; // DISPATCH-1: what failed does so again, and ends the action.
    });
  }

  /** DISPATCH-1. A stop waits for what was claimed before it; what a store out of reach leaves then is claimed again after a start. */
  async #handle(first: Action): Promise<void> {
    const actions = [first];
    let isWhole = !carriesGuidance(first);
    let refusals = 0;
    for (let tries = 0; tries < 2 || !this.#stopping.signal.aborted; tries += 1) {
      const isRefused = refusals >= MOST_REFUSALS;
      try {
        if (!isWhole && !isRefused) {
          actions.push(...(await this.#claimFollowing(first)));
          isWhole = true;
        }
        if (isRefused) return await this.#handleOneByOne(first.session_id, actions);
        return void (await this.#handleOnce(first.session_id, actions));
      } catch (error) {
        if (isRefusal(error)) refusals += 1;
        await this.#waitForStore();
      }
    }
  }

  /** DISPATCH-1. What the store refuses ends as failed, and only that. Takes what is settled out of the list. */
  async #handleOneByOne(session_id: string, actions: Action[]): Promise<void> {
    for (let [action] = actions; action; [action] = actions) {
      const one = [action];
      try {
        // What comes later must not overtake what waits for a retry.
        if (!(await this.#handleOnce(session_id, one)))
          return await this.#settleAlone(actions.slice(1), ownedElsewhere);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        await this.#settleAlone(one, () => ({ kind: "failed", reason: describeError(error) }));
      }
      actions.shift();
    }
  }

  /** DISPATCH-2. Where a session has more than its next step takes, nothing is lost by a wait, and each commit writes the whole of it. */
  async #claimFollowing(first: Action): Promise<Action[]> {
    const session = this.#registry.peek(first.session_id)?.session;
    if (session && !isWholeSlice(session)) await this.#wait(GATHER_MS);
    return this.#store.claimFollowing(first, GUIDANCE_SLICE);
  }

  /** Answers whether the actions ended; where not, they wait for a retry. */
  async #handleOnce(session_id: string, actions: Action[]): Promise<boolean> {
    if (this.#registry.peek(session_id)) return this.#applyInTurn(session_id, actions);
    const session = this.#store.cachedSession(session_id) ?? (await this.#store.getSession(session_id));
    if (!session) {
      await this.#settleAlone(actions, () => ({ kind: "rejected", reason: "the session is unknown" }));
      return true;
    }
    const settled = decideEnded(actions, session);
    if (!settled) return this.#applyInTurn(session_id, actions);
    await this.#store.commit({ actions: settled });
    return true;
  }

  async #applyInTurn(session_id: string, actions: Action[]): Promise<boolean> {
    return this.#registry.withRunner(session_id, async (runner) => {
      const written = runner ? await this.#apply(actions, runner) : "fenced";
      if (written === "fenced") await this.#settleAlone(actions, ownedElsewhere);
      return written !== "fenced";
    });
  }

  /** DISPATCH-2. */
  async #apply(actions: Action[], runner: SessionRunner, isNew = false): Promise<CommitOutcome["kind"] | "nothing"> {
    let decision: Decision | undefined;
    const written = await runner.change((session) => {
      decision = decide(actions, session, runner);
      const { effects: _, session: next, ...settled } = decision;
      if (next) return { session: next, ...settled, ...(isNew ? { only_if_queue_empty: true } : {}) };
      // Only who writes the session learns whether it is still theirs to judge; the queue knows.
      return isNew ? null : settled;
    });
    if (written !== "committed" || !decision?.actions.some(({ outcome }) => outcome === "ok")) return written;
    if (decision.effects.has("interrupt")) runner.interrupt();
    if (decision.effects.has("destroy")) runner.destroy();
    runner.wake();
    return written;
  }

  async #settleAlone(actions: Action[], verdictOn: (action: Action) => Verdict): Promise<void> {
    if (actions.length === 0) return;
    await this.#store.commit({ actions: actions.map((action) => settle(action, verdictOn(action))) });
  }

  #waitForStore(): Promise<void> {
    return this.#wait(STORE_RETRY_MS);
  }

  async #wait(ms: number): Promise<void> {
    await wait(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});
  }
}

const ownedElsewhere = ({ attempts }: Action): Verdict => ({
  kind: "retry",
  reason: "another worker has the session",
  after_ms: Math.min(OWNED_ELSEWHERE_RETRY_MS * 2 ** attempts, LONGEST_RETRY_MS),
});
