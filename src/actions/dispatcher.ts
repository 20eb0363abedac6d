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

/**
 * The most actions in progress at once, over all sessions. High, because it only bounds memory: a pause that waited here would
 * let a step start.
 */
const MOST_IN_PROGRESS = 2000;
const OWNED_ELSEWHERE_RETRY_MS = 200;
const LONGEST_RETRY_MS = 5000;
const STORE_RETRY_MS = 500;
/** How long to batch guidance that no step takes soon, in milliseconds. */
const BATCH_MS = 100;

/**
 * Claims actions and brings each to its end: claim, handle, settle.
 *
 * DISPATCH-1  Every action ends: it fails if its handler throws or the store keeps refusing to write it; an unreachable store
 *             only delays it.
 * DISPATCH-2  A handler's decision and the end of its action are one commit. Consecutive guidance for a session is batched, a
 *             slice at a time, so that a flood costs few commits and blocks no other request.
 * DISPATCH-3  A request for a session that runs here may skip the queue: it is committed together with its effect, unless that
 *             would overtake another request.
 * DISPATCH-4  Only the session's owner decides an action. A rejection writes the session too, unchanged: a worker that lost the
 *             session without noticing is fenced by that write, and the action is decided again on the current
 *             row. A create needs no decision: the session exists already, so its action simply ends.
 */
export class Dispatcher {
  readonly #store: Store;
  readonly #registry: SessionRegistry;
  readonly #worker: string;
  readonly #inProgress = new Set<Promise<unknown>>();
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

  /** Claims nothing more and waits for the work in progress. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#unlisten();
    while (this.#claiming || this.#inProgress.size > 0) await Promise.all([this.#claiming, ...this.#inProgress]);
  }

  #claim(): void {
    this.#again = true;
    this.#claiming ??= this.#claimReady().finally(() => {
      this.#claiming = undefined;
      if (this.#again && this.#inProgress.size < MOST_IN_PROGRESS && !this.#stopping.signal.aborted) this.#claim();
    });
  }

  async #claimReady(): Promise<void> {
    try {
      while (this.#again && !this.#stopping.signal.aborted) {
        this.#again = false;
        const limit = MOST_IN_PROGRESS - this.#inProgress.size;
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
      this.#inProgress.delete(tracked);
      this.#claim();
    });
    this.#inProgress.add(tracked);
  }

  /** DISPATCH-3. Returns whether the action was committed; if not, it must be queued. */
  async applyAtOnce(action: Action): Promise<boolean> {
    // A commit may block on an unreachable store; the runner must be free, so that the caller gets its answer.
    const isRunning = this.#isStarted && !this.#stopping.signal.aborted;
    if (!isRunning || !this.#registry.peek(action.session_id)?.isFree) return false;
    const applying = this.#registry.withRunner(
      action.session_id,
      async (runner) => runner !== null && (await this.#apply([action], runner, true)) === "committed",
    );
    this.#track(applying.catch(() => {}));
    return applying.catch((error: unknown) => {
      if (error instanceof EverstepError) throw error;
      return false; // DISPATCH-1: from the queue it fails again, and the failure is recorded.
    });
  }

  /**
   * DISPATCH-1. A stop waits for actions already claimed; those an unreachable store leaves behind are claimed again after a
   * restart.
   */
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

  /** DISPATCH-1. Only the actions that the store refuses fail. Removes settled actions from the list. */
  async #handleOneByOne(session_id: string, actions: Action[]): Promise<void> {
    for (let [action] = actions; action; [action] = actions) {
      const one = [action];
      try {
        // Later actions must not overtake one that waits for its retry.
        if (!(await this.#handleOnce(session_id, one)))
          return await this.#settleAlone(actions.slice(1), ownedElsewhere);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        await this.#settleAlone(one, () => ({ kind: "failed", reason: describeError(error) }));
      }
      actions.shift();
    }
  }

  /**
   * DISPATCH-2. If the session already has more than its next step takes, waiting costs nothing, while every commit writes all
   * of its guidance.
   */
  async #claimFollowing(first: Action): Promise<Action[]> {
    const session = this.#registry.peek(first.session_id)?.session;
    if (session && !isWholeSlice(session)) await this.#wait(BATCH_MS);
    return this.#store.claimFollowing(first, GUIDANCE_SLICE);
  }

  /** Returns whether the actions ended; if not, they wait for a retry. */
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
      if (next && isNew) return { session: next, ...settled, only_if_queue_empty: true };
      // DISPATCH-4: only writing the session shows whether this worker still owns it. A rejected new request goes through the
      // queue.
      const isDecided = actions.some(({ action_type }) => action_type !== "agent_create");
      return isNew ? null : { session: next ?? (isDecided ? session : undefined), ...settled };
    });
    if (written !== "committed" || !decision?.actions.some(({ outcome }) => outcome === "ok")) return written;
    if (decision.effects.has("interrupt")) runner.interrupt();
    if (decision.effects.has("destroy")) runner.destroy();
    runner.wake();
    return written;
  }

  async #settleAlone(actions: Action[], verdictFor: (action: Action) => Verdict): Promise<void> {
    if (actions.length === 0) return;
    await this.#store.commit({ actions: actions.map((action) => settle(action, verdictFor(action))) });
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
  reason: "another worker owns the session",
  after_ms: Math.min(OWNED_ELSEWHERE_RETRY_MS * 2 ** attempts, LONGEST_RETRY_MS),
});
