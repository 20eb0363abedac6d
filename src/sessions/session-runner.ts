import { Mutex } from "../concurrency/mutex.ts";
import { bouncedFrom, consumedBy } from "../domain/receipt.ts";
import { changeStatus, isLive, type Session } from "../domain/session.ts";
import type { Moniker } from "../monikers/moniker.ts";
import { isRefusal, MOST_REFUSALS } from "../store/is-refusal.ts";
import type { Batch, CommitOutcome, OwnedSession, Ownership } from "../store/store.ts";
import { afterCrash, isSuspect, PROBATION_MS } from "./crash-guard.ts";
import { deliverToAgents } from "./deliver-to-agents.ts";
import { DeliveredGuidance } from "./delivered-guidance.ts";
import { InterruptibleDelay } from "./interruptible-delay.ts";
import { reachedLimit, waitWithin } from "./limits.ts";
import { describeError, nextAttemptIn } from "./retry.ts";
import { type RunningStep, runStep, type StepOutcome } from "./run-step.ts";
import type { RunnerDependencies } from "./runner-dependencies.ts";
import { errorCommit, stepCommit } from "./step-commit.ts";
import type { Slot, StepSlots } from "./step-slots.ts";
import { UnreadMessages } from "./unread-messages.ts";

const STORE_RETRY_MS = 500;

/** What an action writes: the session as it is to be, where that changes, and how the action ends. */
type Change = { session?: Session } & Pick<Batch, "actions" | "overtakes_none">;

/**
 * Advances one session, alone.
 *
 * S1  Every change of the session is made under one mutex, so that each is made from the row that the one before left. The
 *     store refuses any other.
 * S2  A step starts under the mutex as well: after a pause was taken in, no step starts.
 * S3  A step that finishes is committed, whatever was asked meanwhile, unless it was cut short.
 * S4  Guidance leaves `pending_guidance` in the commit of the step that was given it, or is bounced in the commit that
 *     ends the session.
 * S5  A session that has nothing to do costs nothing: no timer, no loop.
 * S6  A store out of reach delays a step's commit; only where the runtime stops meanwhile the step runs again. A step that the store
 *     refuses several times ends the session as `error` with the reason, so that nothing waits for it for good.
 * S7  A step that may have brought the process down is marked before it runs again, runs alone when it is marked already, and
 *     is held when it did so repeatedly (crash-guard.ts).
 */
export class SessionRunner {
  readonly #dependencies: RunnerDependencies;
  readonly #moniker: Moniker;
  #owner: Ownership;
  readonly #mutex = new Mutex();
  readonly #delivered: DeliveredGuidance;
  #session: Session;
  #runningStep: RunningStep | undefined;
  #failures = 0;
  /** Tokens of attempts that came to nothing; the next row counts them. */
  #wasted = 0;
  #delay = new InterruptibleDelay();
  #loop: Promise<void> | undefined;
  #slot: Slot | undefined;
  #woken = false;
  #destroyTimer: NodeJS.Timeout | undefined;
  #fenced = false;
  #shutDown = false;
  /** S7. Whether the last owner died while the session ran. */
  #afterCrash: boolean;

  constructor({ session, owner, after_crash }: OwnedSession, moniker: Moniker, dependencies: RunnerDependencies) {
    this.#session = session;
    this.#owner = owner;
    this.#afterCrash = after_crash && session.status === "running";
    this.#moniker = moniker;
    this.#dependencies = dependencies;
    this.#delivered = new DeliveredGuidance(dependencies.store);
  }

  get session(): Session {
    return this.#session;
  }

  get moniker(): Moniker {
    return this.#moniker;
  }

  /** Told apart by it: the session may have been lost and claimed again meanwhile. */
  get epoch(): number {
    return this.#owner.epoch;
  }

  /** Nothing runs and nothing more will happen to the session here. */
  get isOver(): boolean {
    return this.#fenced || !isLive(this.#session.status);
  }

  get isIdle(): boolean {
    return this.#loop === undefined;
  }

  /** A change begins at once: nothing else is being written. */
  get isFree(): boolean {
    return this.#mutex.isFree;
  }

  /** Looks at the session again: takes up the work if there is some, ends a wait that is no longer wanted. */
  wake(): void {
    this.#woken = true;
    const { status } = this.#session;
    // What is new does not shorten the wait before a retry: it would use up the attempts.
    if (this.#failures === 0 || status !== "running") this.#delay.interrupt();
    if (status !== "running") this.#slot?.cancel();
    if (this.#shutDown || this.isOver) return;
    this.#loop ??= this.#run().finally(() => {
      this.#loop = undefined;
      // A call that came after the loop's last look at the session must not be lost.
      if (this.#woken) this.wake();
    });
  }

  /** Resolves when nothing runs: the session ended, rests, or was shut down. */
  async quiet(): Promise<void> {
    while (this.#loop) await this.#loop;
  }

  /**
   * One change of the session by an action, committed together with it. `decide` sees the session as it is in its turn
   * and says what to write, or null for nothing.
   */
  async change(decide: (session: Session) => Change | null): Promise<CommitOutcome["kind"] | "nothing"> {
    return this.#mutex.run(async () => {
      const decided = decide(this.#session);
      if (!decided) return "nothing";
      const { session, ...batch } = decided;
      return this.#commit(session ?? this.#session, batch, session !== undefined);
    });
  }

  /** Cuts the step in flight short; it runs again with whatever guidance is there then. */
  interrupt(): void {
    this.#runningStep?.cut("interrupted");
    this.#delay.interrupt();
  }

  /** The session is `stopping`: its step may finish within the grace period. */
  destroy(): void {
    if (this.#runningStep) {
      this.#destroyTimer ??= setTimeout(() => this.#runningStep?.cut("destroyed"), this.#dependencies.destroy_grace_ms);
    }
    this.wake();
  }

  /** Starts no further step. `cut` also ends the one in flight, which then runs again after a restart. */
  shutDown(cut: boolean): void {
    this.#shutDown = true;
    if (cut) this.#runningStep?.cut("shutdown");
    this.#delay.interrupt();
  }

  /** The session is not this runner's any more: what it does from now on comes to nothing, so it stops. */
  fence(): void {
    this.#fenced = true;
    this.shutDown(true);
  }

  async #run(): Promise<void> {
    let interval = 0;
    while (!this.#shutDown && !this.#fenced) {
      // S5: a session that rests or ended meanwhile waits for nothing.
      if (interval > 0 && this.#session.status === "running")
        await this.#delay.wait(waitWithin(this.#session, interval));
      interval = 0;
      const next = await this.#advance();
      if (next !== null) interval = next;
      else if (!this.#woken) return;
    }
  }

  /** Runs the next step and writes what came of it. Answers how long to wait then; null where there is nothing to run. */
  async #advance(): Promise<number | null> {
    if (this.#session.status !== "running") return this.#settle(await this.#step());
    const { slots, probation } = this.#dependencies;
    if (!this.#afterCrash || !isSuspect(this.#session))
      return this.#settle(await this.#inSlot(slots, () => this.#step()));
    // S7: alone until it is written, since others would be marked along with it.
    return this.#inSlot(probation, async (slot) => {
      const timer = setTimeout(() => slot.release(), PROBATION_MS);
      try {
        return await this.#settle(await this.#step());
      } finally {
        clearTimeout(timer);
      }
    });
  }

  async #inSlot<Result>(slots: StepSlots, work: (slot: Slot) => Promise<Result>): Promise<Result> {
    const slot = slots.request();
    this.#slot = slot;
    try {
      await slot.granted;
      return await work(slot);
    } finally {
      this.#slot = undefined;
      slot.release();
    }
  }

  /** Runs the next step, or answers null where there is nothing to run. */
  async #step(): Promise<StepOutcome | null> {
    // S2: what the session is to do is decided under the mutex, and the step is under way before it is released.
    const started = await this.#mutex.run(async () => {
      this.#woken = false;
      const { status } = this.#session;
      if (this.#shutDown || this.#fenced) return null;
      if (status === "stopping") await this.#end("destroyed");
      if (status !== "running") return null;
      if (!this.#slot?.isGranted) {
        this.#woken = true;
        return null;
      }
      const limit = reachedLimit(this.#session, Date.now());
      if (limit) {
        await this.#end(limit);
        return null;
      }
      if (this.#afterCrash && !(await this.#maySurvive())) return null;
      this.#runningStep = this.#startStep();
      return this.#runningStep;
    });
    if (!started) return null;
    try {
      return await started.outcome;
    } finally {
      this.#runningStep = undefined;
      clearTimeout(this.#destroyTimer);
      this.#destroyTimer = undefined;
    }
  }

  /** S7. Answers whether the step may run. */
  async #maySurvive(): Promise<boolean> {
    await this.#insist(() => this.#commit(afterCrash(this.#session), {}));
    this.#afterCrash = false;
    return !this.#fenced && this.#session.status === "running";
  }

  #startStep(): RunningStep {
    const session = this.#session;
    const { store, llm, tools, watch, onDelta } = this.#dependencies;
    let event_seq = 0;
    return runStep(session, this.#moniker, {
      llm,
      tools,
      watch,
      unreadMessages: new UnreadMessages(store, session),
      onShown: (shown) => onDelta({ ...shown, session, iteration: session.iteration + 1, event_seq: event_seq++ }),
    });
  }

  /** Writes what came of a step, if there was one. Answers how long to wait before the next one, in milliseconds. */
  async #settle(outcome: StepOutcome | null): Promise<number | null> {
    if (!outcome) return null;
    const tokens = this.#wasted + outcome.tokens;
    this.#wasted = outcome.kind === "done" ? 0 : tokens;
    switch (outcome.kind) {
      case "done": {
        this.#failures = 0;
        const failed = (error: unknown) => this.#commitError(describeError(error), outcome.latency_ms, tokens);
        await this.#mutex.run(() => this.#insist(() => this.#commitStep({ ...outcome, tokens }), failed));
        return this.#session.options.step_interval_ms ?? 0;
      }
      case "failed":
        return this.#retryOrFail(outcome.error, outcome.latency_ms);
      case "cut":
        if (outcome.reason === "out_of_time") await this.#mutex.run(() => this.#end("max_runtime_s"));
        // Nobody knows of them once the process is gone.
        if (outcome.reason === "shutdown" && this.#wasted > 0)
          await this.#mutex.run(() => this.#insist(() => this.#commit(this.#withTokens(this.#wasted), {})));
        return 0;
    }
    return outcome satisfies never;
  }

  async #commitStep(result: Extract<StepOutcome, { kind: "done" }>): Promise<void> {
    const { session, step, message } = stepCommit(this.#session, this.#moniker.kind, result);
    const used = (await this.#delivered.get(step.action_ids)).map((action) => consumedBy(action, step.iteration));
    const said = message && (await deliverToAgents(this.#dependencies, message, step.guidance));
    await this.#commit(session, {
      steps: [step],
      actions: [...used, ...(said?.actions ?? [])],
      ...(said ? { messages: [said.message] } : {}),
      ...(result.cursor ? { cursors: [result.cursor] } : {}),
    });
  }

  async #retryOrFail(error: unknown, latency_ms: number): Promise<number> {
    const { status, options } = this.#session;
    this.#failures += 1;
    const wait = nextAttemptIn(options, error, this.#failures);
    if (wait !== null && (status === "running" || status === "paused")) {
      this.#dependencies.observer.retried(this.#session, error);
      return wait;
    }
    this.#failures = 0;
    await this.#mutex.run(async () => {
      // A session that is being destroyed ends as destroyed, not as failed.
      if (this.#session.status === "stopping") return;
      const tokens = this.#wasted;
      this.#wasted = 0;
      await this.#insist(
        () => this.#commitError(describeError(error), latency_ms, tokens),
        (refusal) => this.#commitError(describeError(refusal), latency_ms, tokens),
      );
    });
    return 0;
  }

  async #commitError(error: string, latency_ms: number, tokens: number): Promise<void> {
    if (this.#session.status === "stopping") return void (await this.#commit(this.#stopped("destroyed", tokens), {}));
    const { session, step } = errorCommit(this.#session, error, latency_ms, tokens);
    await this.#commit(session, { steps: [step] });
  }

  async #end(reason: NonNullable<Session["stop_reason"]>): Promise<void> {
    await this.#insist(() => this.#commit(this.#stopped(reason, this.#wasted), {}));
  }

  #stopped(reason: NonNullable<Session["stop_reason"]>, tokens: number): Session {
    return changeStatus(this.#withTokens(tokens), "stopped", reason);
  }

  /** The session with the tokens of attempts that came to nothing. */
  #withTokens(tokens: number): Session {
    return { ...this.#session, tokens_used: this.#session.tokens_used + tokens };
  }

  /**
   * S6. What an action asked for is not written here: the dispatcher tries that again itself. Where the store keeps refusing,
   * `instead` writes how that ends.
   */
  async #insist(write: () => Promise<unknown>, instead?: (refusal: unknown) => Promise<unknown>): Promise<void> {
    const { revision } = this.#owner;
    for (let refusals = 0; ; ) {
      try {
        return void (await write());
      } catch (error) {
        if (this.#owner.revision !== revision) throw error; // It was written, and what came after it failed.
        if (isRefusal(error)) refusals += 1;
        if (instead && isRefusal(error) && refusals >= MOST_REFUSALS && (await succeeds(() => instead(error)))) return;
        if (this.#shutDown) this.#fenced = true;
        if (this.#fenced) return;
        await this.#delay.wait(STORE_RETRY_MS);
      }
    }
  }

  /** Commits the session as it is to be, with what belongs to it. S4: an end for good bounces what was not used. */
  async #commit(
    session: Session,
    batch: Omit<Batch, "sessions">,
    writesSession = true,
  ): Promise<CommitOutcome["kind"]> {
    const endsForGood = session.status === "done" || session.status === "stopped";
    const bounced = endsForGood
      ? (await this.#delivered.get(session.pending_action_ids)).map((action) => bouncedFrom(action, session))
      : [];
    const next = bounced.length > 0 ? { ...session, pending_guidance: [], pending_action_ids: [] } : session;
    const actions = [...(batch.actions ?? []), ...bounced];
    const { store, observer } = this.#dependencies;
    const started = performance.now();
    const outcome = await store.commit({
      ...batch,
      ...(writesSession ? { sessions: [{ kind: "update", session: next, owner: this.#owner }] } : {}),
      ...(actions.length > 0 ? { actions } : {}),
    });
    if (outcome.kind === "committed") {
      this.#session = next;
      if (writesSession) this.#owner = { ...this.#owner, revision: this.#owner.revision + 1 };
      observer.committed(performance.now() - started);
      for (const step of batch.steps ?? []) observer.stepCommitted(step);
      this.#delivered.update(actions);
    } else if (outcome.kind !== "overtakes") this.#fenced = true;
    return outcome.kind;
  }
}

const succeeds = (work: () => Promise<unknown>): Promise<boolean> =>
  work().then(
    () => true,
    () => false,
  );
