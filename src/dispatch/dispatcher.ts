import { setTimeout as wait } from "node:timers/promises";
import { type Action, type ActionType, carriesGuidance } from "../domain/action.ts";
import { EverstepError } from "../domain/errors.ts";
import { isStoppedByLimit, type Session } from "../domain/session.ts";
import type { SessionRegistry } from "../sessions/registry.ts";
import type { SessionRunner } from "../sessions/session-runner.ts";
import type { CommitOutcome, Store } from "../store/store.ts";
import { create } from "./handlers/create.ts";
import { destroy } from "./handlers/destroy.ts";
import { fork } from "./handlers/fork.ts";
import { guide } from "./handlers/guide.ts";
import { pause } from "./handlers/pause.ts";
import { resume } from "./handlers/resume.ts";
import { type Handler, type Outcome, settle } from "./outcome.ts";

const HANDLERS: Readonly<Record<ActionType, Handler>> = {
  agent_create: create,
  agent_pause: pause,
  agent_resume: resume,
  agent_interrupt: guide,
  agent_input: guide,
  agent_destroy: destroy,
  agent_fork: fork,
};

/** Actions under way at once, over all sessions. It only bounds memory: a pause that waits its turn here would let a step start. */
const MOST_UNDER_WAY = 2000;
const OWNED_ELSEWHERE_RETRY_MS = 200;
const STORE_RETRY_MS = 500;

/**
 * Claims actions and sees each to its end: claim, handle, settle.
 *
 * A1  Every action ends: a handler that throws ends it as failed, a store out of reach only delays it.
 * A2  What a handler decides and the end of its action are one commit.
 * A3  A request to a session that is at work here need not wait in the queue: it is written together with what it does, unless
 *     that would overtake another.
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

  /** A3. Answers whether the action was written; where not, it has to be put into the queue. */
  async applyAtOnce(action: Action): Promise<boolean> {
    // What is being written may wait for a store out of reach; who asks is answered before that.
    const isAtWork = this.#isStarted && !this.#stopping.signal.aborted;
    if (!isAtWork || !this.#registry.peek(action.session_id)?.isFree) return false;
    const applying = this.#registry.withRunner(
      action.session_id,
      async (runner) => runner !== null && (await this.#apply(action, runner, true)) === "committed",
    );
    this.#track(applying.catch(() => {}));
    return applying.catch((error: unknown) => {
      if (error instanceof EverstepError) throw error;
      return false; // A1: a handler that throws does so again, and ends the action.
    });
  }

  /** A1. A stop waits for what was claimed before it; what a store out of reach leaves then is claimed again after a start. */
  async #handle(action: Action): Promise<void> {
    let failure: string | null = null;
    for (let tries = 0; tries < 2 || !this.#stopping.signal.aborted; tries += 1) {
      try {
        if (failure === null) return await this.#handleOnce(action);
        return await this.#settleAlone(action, { kind: "failed", reason: failure });
      } catch (error) {
        if (error instanceof EverstepError) await this.#waitForStore();
        else failure = String(error);
      }
    }
  }

  async #handleOnce(action: Action): Promise<void> {
    if (this.#registry.peek(action.session_id)) return this.#applyInTurn(action);
    const { session_id } = action;
    const session = this.#store.atHand(session_id) ?? (await this.#store.getSession(session_id));
    if (!session) return this.#settleAlone(action, { kind: "rejected", reason: "the session is unknown" });
    const isOver = session.status === "done" || session.status === "stopped";
    if (isOver && !mayUndo(action, session)) {
      // No runner is needed to tell what cannot be done any more; a creation whose session is through already went well.
      const isBirth = action.action_type === "agent_create" || action.action_type === "agent_fork";
      return this.#settleAlone(
        action,
        isBirth ? { kind: "ok" } : { kind: "rejected", reason: `the session is ${session.status}` },
      );
    }
    await this.#applyInTurn(action);
  }

  async #applyInTurn(action: Action): Promise<void> {
    await this.#registry.withRunner(action.session_id, async (runner) => {
      const written = runner ? await this.#apply(action, runner) : "fenced";
      if (written === "fenced") await this.#settleAlone(action, OWNED_ELSEWHERE);
    });
  }

  /** A2. */
  async #apply(action: Action, runner: SessionRunner, isNew = false): Promise<CommitOutcome["kind"] | "nothing"> {
    let outcome: Outcome | undefined;
    const written = await runner.change((session) => {
      outcome = HANDLERS[action.action_type](action, session, runner.moniker);
      const actions = [settle(action, outcome, carriesGuidance(action))];
      if (outcome.kind === "ok" && outcome.session)
        return { session: outcome.session, actions, ...(isNew ? { overtakes_none: true } : {}) };
      // Only who writes the session learns whether it is still theirs to judge; the queue knows.
      return isNew ? null : { actions };
    });
    if (written !== "committed" || outcome?.kind !== "ok") return written;
    if (outcome.effect === "interrupt") runner.interrupt();
    if (outcome.effect === "destroy") runner.destroy();
    runner.wake();
    return written;
  }

  async #settleAlone(action: Action, outcome: Outcome): Promise<void> {
    await this.#store.commit({ actions: [settle(action, outcome, carriesGuidance(action))] });
  }

  async #waitForStore(): Promise<void> {
    await wait(STORE_RETRY_MS, undefined, { signal: this.#stopping.signal }).catch(() => {});
  }
}

/** What a limit stopped can be set going again, or be ended for good. */
const mayUndo = ({ action_type }: Action, session: Session): boolean =>
  isStoppedByLimit(session) && (action_type === "agent_resume" || action_type === "agent_destroy");

const OWNED_ELSEWHERE: Outcome = {
  kind: "retry",
  reason: "another worker has the session",
  after_ms: OWNED_ELSEWHERE_RETRY_MS,
};
