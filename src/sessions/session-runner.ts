import { Mutex } from "../concurrency/mutex.ts";
import { EverstepError } from "../domain/errors.ts";
import { now } from "../domain/ids.ts";
import { bouncedFrom, consumedBy, takenBack } from "../domain/receipt.ts";
import { changeStatus, isLive, type Session } from "../domain/session.ts";
import type { FrameOut } from "../domain/step-frame.ts";
import { matchesGlob } from "../domain/step-globs.ts";
import type { VersionedMoniker } from "../monikers/catalog.ts";
import { StepError } from "../monikers/moniker.ts";
import type { Batch, CommitOutcome, OwnedSession, Ownership, SessionWrite } from "../store/store.ts";
import { isRefusal, MOST_REFUSALS } from "../store/store-errors.ts";
import {
  attemptAfter,
  beginOnce,
  type EarlierAttempts,
  earlierAttempts,
  endOfFailure,
  noAttempts,
  notBegun,
  startedAttempt,
  waitsOutOutage,
} from "./attempts.ts";
import { afterCrash, isSuspect, PROBATION_MS, RECONNECT_MS } from "./crash-guard.ts";
import { deliverToAgents } from "./deliver-to-agents.ts";
import { DeliveredGuidance } from "./delivered-guidance.ts";
import { endRows } from "./end-rows.ts";
import { firstSlice } from "./guidance-slice.ts";
import { InterruptibleDelay } from "./interruptible-delay.ts";
import { reachedLimit, waitWithin } from "./limits.ts";
import { afterFailure, describeError, isOutage, nextAttemptIn } from "./retry.ts";
import { type RunningStep, runStep, type StepOutcome } from "./run-step.ts";
import type { RunnerDependencies, StepRows } from "./runner-dependencies.ts";
import { SessionTrace } from "./session-trace.ts";
import { addSpending, charged, type Spending } from "./spending.ts";
import { stateVersion } from "./state-version.ts";
import { errorCommit, type StepFailure, stepCommit } from "./step-commit.ts";
import type { Slot, StepSlots } from "./step-slots.ts";
import { UnreadMessages } from "./unread-messages.ts";

const STORE_RETRY_MS = 500;
/** A backoff of at least this many milliseconds is written. */
const NOTED_BACKOFF_MS = 200;

/** What an action writes: the new session row, if it changes, and the action's outcome. */
type Change = { session?: Session /** Actions whose guidance was removed. */; dropped?: string[] } & Pick<
  Batch,
  "actions" | "only_if_queue_empty"
>;

/** The runner's current activity and the resources it owns. Outside calls reach a wait only through it. */
type Activity =
  | { kind: "resting" }
  | { kind: "deciding" }
  | { kind: "delayed"; delay: InterruptibleDelay }
  | { kind: "queued"; slot: Slot }
  | { kind: "stepping"; step: RunningStep; destroyTimer: NodeJS.Timeout | undefined }
  | { kind: "writing"; delay: InterruptibleDelay | undefined };

const RESTING: Activity = { kind: "resting" };
const DECIDING: Activity = { kind: "deciding" };
const WRITING: Activity = { kind: "writing", delay: undefined };

/**
 * Advances one session. Its activity is one of these:
 *
 * - `resting`: no loop runs. The session waits, is paused or has ended, or the runner is leaving. `wake` starts the loop, which
 *   goes through the other activities until there is nothing to do.
 * - `deciding`: about to decide, under the mutex, what to do next. A `stopping` session is ended, a `running` one becomes
 *   `queued`, any other rests.
 * - `queued`: waits for one of the slots that bound how many steps run at once. A wake that finds the session no longer
 *   `running` cancels the request. Once granted, it decides again and starts the step. The slot is released when the step is
 *   over; for a step on probation, when its result is written.
 * - `stepping`: the moniker runs. `interrupt` and `shutDown` cut it short, `destroy` does so after a grace period.
 * - `writing`: the result of the step is being committed, with retries while the store does not accept it.
 * - `delayed`: the next step is due after the session's interval, or after a backoff if this one failed. A wake ends an
 *   interval early, but not a backoff; a session that is no longer `running` does not wait. Also used before a suspect's step,
 *   since its last owner may come back (CRASH-4).
 *
 * Changes by actions (`change`) run beside all of these, under the same mutex. The standing only moves from `owner` to
 * `leaving`, which starts no further step, and to `fenced`, after which nothing the runner does counts.
 *
 * RUNNER-1  Every change of the session is made under one mutex, so that each starts from the row the previous one left. The
 *           store refuses any other.
 * RUNNER-2  A step starts under the mutex as well: no step starts after a pause was applied.
 * RUNNER-3  A step that finishes is committed, whatever was requested meanwhile, unless it was cut short.
 * RUNNER-4  Guidance leaves `pending_guidance` in the commit of the step that received it, or bounces in the commit that ends
 *           the session or takes it back. Guidance that a running step received cannot be taken back.
 * RUNNER-5  A session with nothing to do costs nothing: no timer, no loop.
 * RUNNER-6  An unreachable store delays a step's commit; the step runs again only if the runtime stops meanwhile. A step that
 *           the store refuses several times ends the session as `error` with the reason, so that nothing waits for it forever.
 * RUNNER-7  A step that may have crashed the process is marked before it runs again, runs alone if it is already marked, and is
 *           held after repeated crashes (crash-guard.ts).
 * RUNNER-8  A step is run and committed by one version of its moniker, the newest when it starts. A state of another version is
 *           migrated for the step; only what the step returns is stored, so a retried step migrates again.
 * RUNNER-9  The start of a step marked `once` is committed, under this runner's ownership, before the moniker is called, so
 *           that a later attempt can tell. If it is to start at once, its start is committed with the result of the step
 *           before; if it does not start after all, the next commit takes that back.
 * RUNNER-10  A step's start time is written only after it has run for a while, so that a short step costs nothing extra.
 * RUNNER-11  During an outage a step is retried for as long as the session allows. The row records when the outage began and
 *            when the next attempt is due, so that a restart neither retries early nor forgets. Each such attempt is written
 *            before it begins.
 */
export class SessionRunner {
  readonly #dependencies: RunnerDependencies;
  readonly #currentMoniker: () => VersionedMoniker;
  /** The version that runs the current step or ran the last one: a step is committed by the code that ran it. */
  #moniker: VersionedMoniker;
  /** RUNNER-8. The version that produced the session's state; absent until it is looked up or a step is committed here. */
  #stateVersion: { version: string | null | undefined } | undefined;
  readonly #mutex = new Mutex();
  readonly #delivered: DeliveredGuidance;
  readonly #trace: SessionTrace | undefined;
  #session: Session;
  #owner: Ownership;
  #standing: "owner" | "leaving" | "fenced" = "owner";
  #activity: Activity = RESTING;
  /** Set unless the activity is `resting`. */
  #loop: Promise<void> | undefined;
  /** Whether something may have changed since the loop last looked at the session. */
  #isWoken = false;
  #earlier: EarlierAttempts;
  /** RUNNER-9. Whether the row says that the next step has started, although it has not yet. */
  #isBegunAhead = false;
  /** RUNNER-4. Set from the start of a step until its result is written. */
  #stepping: readonly string[] | null = null;

  constructor(
    { session, owner, after_crash }: OwnedSession,
    currentMoniker: () => VersionedMoniker,
    dependencies: RunnerDependencies,
  ) {
    this.#session = session;
    this.#owner = owner;
    this.#earlier = earlierAttempts(session, after_crash);
    this.#currentMoniker = currentMoniker;
    this.#moniker = currentMoniker();
    this.#dependencies = dependencies;
    const { store, tracer } = dependencies;
    this.#delivered = new DeliveredGuidance(store);
    this.#trace = tracer && new SessionTrace(tracer, store, session, after_crash);
  }

  get session(): Session {
    return this.#session;
  }

  /** The current version: it may be reloaded between two steps. */
  get moniker(): VersionedMoniker {
    return this.#currentMoniker();
  }

  /** The actions whose guidance the running step received; null if no step runs. */
  get stepping(): readonly string[] | null {
    return this.#stepping;
  }

  /** Distinguishes runners of one session, which may have been lost and claimed again. */
  get epoch(): number {
    return this.#owner.epoch;
  }

  /** Nothing more will happen to the session here. */
  get isOver(): boolean {
    return this.#standing === "fenced" || !isLive(this.#session.status);
  }

  get isIdle(): boolean {
    return this.#activity.kind === "resting";
  }

  /** Nothing else is being written, so a change would start at once. */
  get isFree(): boolean {
    return this.#mutex.isFree;
  }

  /** Looks at the session again: starts the loop if there is work, ends a wait that has lost its purpose. */
  wake(): void {
    this.#isWoken = true;
    const { status } = this.#session;
    // A wake does not shorten a backoff: that would use up the attempts, or burden a provider that is down.
    const backsOff = this.#earlier.failures > 0 || this.#earlier.outage_since !== null;
    if (!backsOff || status !== "running") this.#endDelay();
    if (status !== "running" && this.#activity.kind === "queued") this.#activity.slot.cancel();
    if (this.#standing !== "owner" || this.isOver || this.#loop) return;
    this.#activity = DECIDING;
    this.#loop = this.#run().finally(() => {
      this.#activity = RESTING;
      this.#loop = undefined;
      // A wake after the loop's last look at the session must not be lost.
      if (this.#isWoken) this.wake();
      if (this.#loop === undefined && this.#standing !== "fenced") this.#trace?.rest(this.#session);
    });
  }

  /** Resolves when the loop has ended: the session ended, rests, or was shut down. */
  async quiet(): Promise<void> {
    while (this.#loop) await this.#loop;
  }

  /**
   * Applies an action's change and commits it with the action. `decide` sees the session under the mutex and returns what to
   * write, or null for nothing.
   */
  async change(decide: (session: Session) => Change | null): Promise<CommitOutcome["kind"] | "nothing"> {
    return this.#mutex.run(async () => {
      const decided = decide(this.#session);
      if (!decided) return "nothing";
      const { session, dropped = [], ...batch } = decided;
      if (dropped.length > 0)
        batch.actions = [...(batch.actions ?? []), ...(await this.#delivered.get(dropped)).map(takenBack)]; // RUNNER-4
      return this.#commit(session ?? this.#session, batch, { writesSession: session !== undefined });
    });
  }

  /** Cuts the running step short; it runs again with the guidance pending by then. */
  interrupt(): void {
    if (this.#activity.kind === "stepping") this.#activity.step.cut("interrupted");
    this.#endDelay();
  }

  /** The session is `stopping`: its step may finish within the grace period. */
  destroy(): void {
    const activity = this.#activity;
    if (activity.kind === "stepping")
      activity.destroyTimer ??= setTimeout(() => activity.step.cut("destroyed"), this.#dependencies.destroy_grace_ms);
    this.wake();
  }

  /** Starts no further step. `cut` also aborts the running one, which runs again after a restart. */
  shutDown(cut: boolean): void {
    if (this.#standing === "owner") this.#standing = "leaving";
    if (cut && this.#activity.kind === "stepping") this.#activity.step.cut("shutdown");
    this.#endDelay();
  }

  /** This runner no longer owns the session: nothing it does counts, so it stops. */
  fence(): void {
    this.#standing = "fenced";
    this.shutDown(true);
  }

  #endDelay(): void {
    if (this.#activity.kind === "delayed" || this.#activity.kind === "writing") this.#activity.delay?.interrupt();
  }

  async #run(): Promise<void> {
    await this.#advanceUntilRest();
    if (this.#isBegunAhead && this.#standing !== "fenced")
      await this.#mutex.run(() => this.#retryUntilWritten(() => this.#commit(notBegun(this.#session), {})));
  }

  async #advanceUntilRest(): Promise<void> {
    // RUNNER-11: the previous owner was waiting.
    let interval = waitsOutOutage(this.#session) ? Date.parse(this.#session.retry_at ?? "") - Date.now() : 0;
    while (this.#standing === "owner") {
      // RUNNER-5: a session that rests or has ended does not wait.
      if (interval > 0 && this.#session.status === "running") {
        const delay = new InterruptibleDelay();
        this.#activity = { kind: "delayed", delay };
        await delay.wait(waitWithin(this.#session, interval));
      }
      this.#activity = DECIDING;
      const next = await this.#advance().finally(() => {
        this.#stepping = null;
      });
      if (next === null && !this.#isWoken) return;
      interval = next ?? 0;
    }
  }

  /** Runs the next step and writes its result. Returns the delay before the next one; null if there is nothing to run. */
  async #advance(): Promise<number | null> {
    if (this.#session.status !== "running") return this.#settle(await this.#step(null));
    const { slots, probation } = this.#dependencies;
    if (!(await this.#isSuspected())) return this.#settle(await this.#inSlot(slots, (slot) => this.#step(slot)));
    // RUNNER-7: alone until its result is written, since a crash would mark other steps too.
    return this.#inSlot(probation, async (slot) => {
      const timer = setTimeout(() => slot.release(), PROBATION_MS);
      try {
        return await this.#settle(await this.#step(slot));
      } finally {
        clearTimeout(timer);
      }
    });
  }

  /** CRASH-4. */
  async #isSuspected(): Promise<boolean> {
    const { store } = this.#dependencies;
    if (!this.#earlier.may_have_crashed || !isSuspect(this.#session)) return false;
    if (!store.lastOwnerLives) return true;
    const due = performance.now() + RECONNECT_MS;
    for (;;) {
      const left = due - performance.now();
      if (this.#standing !== "owner" || this.#session.status !== "running") return true;
      if (left <= 0) break;
      const delay = new InterruptibleDelay();
      this.#activity = { kind: "delayed", delay };
      await delay.wait(left);
    }
    // An unreachable store gives no answer; the next owner checks again.
    const lives = await store.lastOwnerLives(this.#session.session_id).catch(() => true);
    if (lives) this.#earlier.may_have_crashed = false;
    return !lives;
  }

  async #inSlot<Result>(slots: StepSlots, work: (slot: Slot) => Promise<Result>): Promise<Result> {
    const slot = slots.request();
    this.#activity = { kind: "queued", slot };
    try {
      await slot.granted;
      return await work(slot);
    } finally {
      slot.release();
    }
  }

  /** Runs the next step; null if there is nothing to run. */
  async #step(slot: Slot | null): Promise<StepOutcome | null> {
    // RUNNER-2: decides under the mutex, and the step is running before it is released.
    const stepping = await this.#mutex.run(() => this.#startStep(slot));
    if (!stepping) return null;
    try {
      return await stepping.step.outcome;
    } finally {
      clearTimeout(stepping.destroyTimer);
      this.#activity = WRITING;
    }
  }

  async #startStep(slot: Slot | null): Promise<Extract<Activity, { kind: "stepping" }> | null> {
    // First, because the decisions below must hold until the step has started.
    if (this.#trace && this.#session.status === "running") await this.#trace.prepare(this.#session);
    this.#isWoken = false;
    const { status } = this.#session;
    if (this.#standing !== "owner") return null;
    if (status === "stopping") await this.#end("destroyed");
    if (status !== "running") {
      // After a pause the wait for the outage starts over.
      this.#earlier = { ...this.#earlier, outage_since: null, outage_tries: 0 };
      return null;
    }
    if (this.#dependencies.hold.holds(this.#session)) return null;
    if (!slot?.isGranted) {
      // It runs again by now; the loop requests another slot.
      this.#isWoken = true;
      return null;
    }
    const limit = reachedLimit(this.#session, Date.now());
    if (limit) {
      await this.#end(limit);
      return null;
    }
    if (isBreakpoint(this.#session)) {
      const { next_step_token: step_token } = this.#session;
      const held = {
        ...changeStatus(this.#session, "paused"),
        pause_reason: { kind: "breakpoint" as const, step_token },
      };
      await this.#retryUntilWritten(() => this.#commit(held, {}));
      return null;
    }
    const mustMark =
      this.#earlier.may_have_crashed || startedAttempt(this.#session)?.once || waitsOutOutage(this.#session);
    if (!mustMark || this.#isBegunAhead) this.#earlier.begun += 1;
    else if (!(await this.#markStart())) return null;
    this.#isBegunAhead = false;
    this.#stepping = firstSlice(this.#session).action_ids;
    const stepping = { kind: "stepping" as const, step: this.#runStep(), destroyTimer: undefined };
    this.#activity = stepping;
    return stepping;
  }

  /** RUNNER-10. Best effort: if the store is unreachable, nobody can read it either. */
  #noteStart(step: RunningStep, started: number): void {
    const step_started_at = new Date(started).toISOString();
    this.#mutex
      .run(async () => {
        const isRunning = this.#activity.kind === "stepping" && this.#activity.step === step;
        if (isRunning && this.#standing === "owner")
          await this.#commit({ ...this.#session, ...this.#attemptsBefore(), step_started_at, retry_at: null }, {});
      })
      .catch(() => {});
  }

  /** The number of failed attempts before the running one, for observers. A step marked `once` has it in its row already. */
  #attemptsBefore(): Partial<Session> {
    const earlier = { ...this.#earlier, begun: this.#earlier.begun - 1 };
    if (earlier.begun === 0 || startedAttempt(this.#session)?.once) return {};
    return { started_attempt: attemptAfter(this.#session, earlier) };
  }

  /** RUNNER-7, RUNNER-9, RUNNER-11. Writes what must be durable before the step begins. Returns whether it may run. */
  async #markStart(): Promise<boolean> {
    const { may_have_crashed, failures, spent } = this.#earlier;
    const session = may_have_crashed ? afterCrash(this.#session) : this.#session;
    const earlier = may_have_crashed ? { ...earlierAttempts(session, false), failures, spent } : this.#earlier;
    const begun = earlier.begun + 1;
    const begins = session.status === "running" && startedAttempt(session)?.once;
    const again = waitsOutOutage(session) ? { ...session, step_started_at: now(), retry_at: null } : session;
    const marked = begins ? beginOnce(session, begun, now()) : again;
    if (marked !== this.#session) await this.#retryUntilWritten(() => this.#commit(marked, {}));
    this.#earlier = { ...earlier, begun, may_have_crashed: false };
    // It may have been fenced meanwhile.
    return !this.isOver && this.#session.status === "running";
  }

  #runStep(): RunningStep {
    const session = this.#session;
    const { store, llm, tools, watch, keep_calls, onDelta } = this.#dependencies;
    const started = Date.now();
    let event_seq = 0;
    this.#moniker = this.#currentMoniker();
    const step = runStep(session, this.#moniker, {
      trace: this.#trace?.start(session, this.#moniker, this.#earlier.begun),
      llm,
      tools,
      attempt: { number: this.#earlier.begun, after: this.#earlier.ended },
      watch,
      keep_calls,
      unreadMessages: new UnreadMessages(store, session),
      stateVersion: async () => {
        this.#stateVersion ??= { version: await stateVersion(store, session) };
        return this.#stateVersion.version;
      },
      onOutput: (output) => onDelta({ ...output, session, iteration: session.iteration + 1, event_seq: event_seq++ }),
      onLong: () => this.#noteStart(step, started),
    });
    return step;
  }

  /** Writes the result of a step, if there was one. Returns the delay before the next one, in milliseconds. */
  async #settle(outcome: StepOutcome | null): Promise<number | null> {
    if (!outcome) return null;
    const spent = addSpending(this.#earlier.spent, outcome.spent);
    switch (outcome.kind) {
      case "done": {
        const { frame, latency_ms } = outcome;
        let rows = frame.actions ? await this.#rowsOf(frame) : NO_ROWS;
        if (rows.kind === "failed") return this.#settle({ ...outcome, ...rows });
        const earlier = { ...this.#earlier, ended: "error" as const };
        this.#earlier = noAttempts();
        const failed = (error: unknown) =>
          this.#commitError({ error: describeError(error), latency_ms, spent, earlier });
        const done = { ...outcome, spent, attempts: earlier.begun };
        const write = async (): Promise<void> => {
          if (rows.kind === "failed") throw rows.error;
          const { written } = rows;
          try {
            await this.#commitStep(done, rows);
          } catch (error) {
            // Another commit has just created a session that the frame names.
            if (error instanceof StepError) rows = await this.#rowsOf(frame);
            throw error;
          } finally {
            written();
          }
        };
        await this.#mutex.run(() => this.#retryUntilWritten(write, failed));
        return this.#session.options.step_interval_ms ?? 0;
      }
      case "failed":
        this.#trace?.failed(outcome.error);
        this.#earlier = { ...this.#earlier, spent, ended: endOfFailure(outcome.error) };
        return this.#retryOrFail(outcome.error, outcome.latency_ms);
      case "cut":
        this.#trace?.step?.cut(outcome.reason);
        this.#earlier = { ...this.#earlier, spent, ended: "interrupt" };
        if (outcome.reason === "out_of_time") await this.#mutex.run(() => this.#end("max_runtime_s"));
        if (outcome.reason === "shutdown") await this.#mutex.run(() => this.#commitCut(spent));
        return 0;
    }
    return outcome satisfies never;
  }

  /** The rows for a frame's actions. Impossible actions fail the step; an unreachable store is retried. */
  async #rowsOf({ actions = [] }: FrameOut): Promise<PreparedRows> {
    if (actions.length === 0) return NO_ROWS;
    const { agent_id, session_id, iteration } = this.#session;
    const sender = { agent_id, session_id, iteration: iteration + 1, traceparent: this.#trace?.step?.traceparent };
    for (;;) {
      try {
        return { kind: "rows", ...(await this.#dependencies.prepareActions(actions, sender)) };
      } catch (error) {
        if (!(error instanceof EverstepError) || this.#standing !== "owner") return { kind: "failed", error };
        const delay = new InterruptibleDelay();
        this.#activity = { kind: "writing", delay };
        await delay.wait(STORE_RETRY_MS);
      }
    }
  }

  async #commitStep(
    result: Extract<StepOutcome, { kind: "done" }> & { attempts: number },
    rows: StepRows,
  ): Promise<void> {
    const { session, step, message } = stepCommit(this.#session, this.#moniker, result);
    const consumed = (await this.#delivered.get(step.action_ids)).map((action) => consumedBy(action, step.iteration));
    const delivery =
      message && (await deliverToAgents(this.#dependencies, message, step.guidance, this.#trace?.step?.traceparent));
    // Omits empty lists: each costs every step.
    const batch: Batch = { steps: [step] };
    const actions = [...consumed, ...(delivery?.actions ?? []), ...rows.actions];
    if (actions.length > 0) batch.actions = actions;
    if (rows.participants.length > 0) batch.participants = rows.participants;
    if (delivery) batch.messages = [delivery.message];
    if (result.cursor) batch.cursors = [result.cursor];
    const startsAtOnce = this.#startsOnceStepAtOnce(session);
    const written = startsAtOnce ? beginOnce(session, 1, step.created_at) : session;
    const outcome = await this.#commit(written, batch, { children: rows.sessions });
    this.#isBegunAhead = startsAtOnce && outcome === "committed";
  }

  /** RUNNER-9. A step that has to wait for something is not begun ahead: a crash meanwhile would leave a doubt for no reason. */
  #startsOnceStepAtOnce(session: Session): boolean {
    const isNext = this.#standing === "owner" && session.status === "running" && startedAttempt(session)?.once === true;
    return isNext && !session.options.step_interval_ms && this.#dependencies.slots.hasFree && !isBreakpoint(session);
  }

  /** Otherwise the usage would be lost with the process, as would the fact that a step marked `once` ended normally. */
  async #commitCut(spent: Spending): Promise<void> {
    const isOnce = startedAttempt(this.#session)?.once;
    if (spent.tokens === 0 && spent.cost_usd === 0 && !isOnce) return;
    const started_attempt = isOnce ? attemptAfter(this.#session, this.#earlier) : this.#session.started_attempt;
    const cut = { ...charged(this.#session, spent), started_attempt, step_started_at: null };
    await this.#retryUntilWritten(() => this.#commit(cut, {}));
  }

  async #retryOrFail(error: unknown, latency_ms: number): Promise<number> {
    const { status, options } = this.#session;
    this.#earlier = afterFailure(this.#earlier, options, error);
    const wait = nextAttemptIn(options, error, this.#earlier);
    if (wait !== null && (status === "running" || status === "paused")) {
      this.#dependencies.observer.retried(this.#session, error);
      const isNoted = wait >= NOTED_BACKOFF_MS || startedAttempt(this.#session)?.once || isOutage(options, error);
      if (isNoted) await this.#noteRetry(wait, error);
      return wait;
    }
    await this.#mutex.run(async () => {
      // A session that is being destroyed ends as destroyed, not as failed.
      if (this.#session.status === "stopping") return;
      const earlier = this.#earlier;
      this.#earlier = noAttempts();
      const { spent } = earlier;
      await this.#retryUntilWritten(
        () => this.#commitError({ error: describeError(error), latency_ms, spent, earlier }),
        (refusal) => this.#commitError({ error: describeError(refusal), latency_ms, spent, earlier }),
      );
    });
    return 0;
  }

  /** Best effort: the next commit contains the same. */
  async #noteRetry(wait: number, error: unknown): Promise<void> {
    const retry_at = new Date(Date.now() + wait).toISOString();
    const { outage_since } = this.#earlier;
    await this.#mutex
      .run(async () => {
        // CRASH-6: this attempt ended normally.
        const crashes = outage_since === null ? undefined : 0;
        const started_attempt = attemptAfter(this.#session, this.#earlier, crashes);
        const last_error = outage_since === null ? this.#session.last_error : describeError(error);
        if (this.#session.status === "running" && this.#standing === "owner")
          await this.#commit({ ...this.#session, retry_at, last_error, started_attempt, step_started_at: null }, {});
      })
      .catch(() => {});
  }

  async #commitError(failure: StepFailure): Promise<void> {
    if (this.#session.status === "stopping")
      return void (await this.#commit(this.#stopped("destroyed", failure.spent), {}));
    const { session, step } = errorCommit(this.#session, this.#moniker, failure);
    await this.#commit(session, { steps: [step] });
  }

  async #end(reason: NonNullable<Session["stop_reason"]>): Promise<void> {
    await this.#retryUntilWritten(() => this.#commit(this.#stopped(reason, this.#earlier.spent), {}));
  }

  #stopped(reason: NonNullable<Session["stop_reason"]>, spent: Spending): Session {
    return changeStatus(charged(this.#session, spent), "stopped", reason);
  }

  /**
   * RUNNER-6. Retries a write until the store takes it. Not for the changes of actions: the dispatcher retries those. If the
   * store keeps refusing, `instead` writes the failure.
   */
  async #retryUntilWritten(
    write: () => Promise<unknown>,
    instead?: (refusal: unknown) => Promise<unknown>,
  ): Promise<void> {
    this.#activity = WRITING;
    const { revision } = this.#owner;
    for (let refusals = 0; ; ) {
      try {
        return void (await write());
      } catch (error) {
        if (this.#owner.revision !== revision) throw error; // The write succeeded; something after it failed.
        if (isRefusal(error)) refusals += 1;
        if (instead && isRefusal(error) && refusals >= MOST_REFUSALS && (await succeeds(() => instead(error)))) return;
        if (this.#standing !== "owner") {
          this.#standing = "fenced";
          return;
        }
        const delay = new InterruptibleDelay();
        this.#activity = { kind: "writing", delay };
        await delay.wait(STORE_RETRY_MS);
      }
    }
  }

  /** Commits the new session row and its related rows. RUNNER-4: a final end bounces unused guidance. */
  async #commit(
    session: Session,
    rows: Omit<Batch, "sessions">,
    { children = [], writesSession = true }: { children?: Session[]; writesSession?: boolean } = {},
  ): Promise<CommitOutcome["kind"]> {
    const isFinal = session.status === "done" || session.status === "stopped";
    const bounced = isFinal
      ? (await this.#delivered.get(session.pending_action_ids)).map((action) => bouncedFrom(action, session))
      : [];
    const kept = this.#isBegunAhead && session.status !== "running" ? notBegun(session) : session; // RUNNER-9
    const next = bounced.length > 0 ? { ...kept, pending_guidance: [], pending_action_ids: [] } : kept;
    const { store, observer } = this.#dependencies;
    const ending = isLive(next.status) ? [] : await endRows(store, this.#session, next, this.#trace?.step?.traceparent);
    const actions = [...(rows.actions ?? []), ...bounced, ...ending];
    const batch: Batch = { ...rows };
    if (actions.length > 0) batch.actions = actions;
    if (writesSession)
      batch.sessions = [{ kind: "update", session: next, owner: this.#owner }, ...children.map(newSession)];
    const started = performance.now();
    const span = rows.steps && this.#trace?.step;
    const outcome = await (span ? span.commit(() => store.commit(batch)) : store.commit(batch));
    if (outcome.kind === "committed") {
      this.#session = next;
      if (writesSession) this.#owner = { ...this.#owner, revision: this.#owner.revision + 1 };
      if (startedAttempt(next)?.begun === undefined) this.#isBegunAhead = false;
      observer.committed(performance.now() - started);
      for (const step of rows.steps ?? []) {
        if (step.status === "ok") this.#stateVersion = { version: step.moniker_version };
        observer.stepCommitted(step);
        this.#trace?.committed(step, actions);
      }
      this.#delivered.update(actions);
    } else if (outcome.kind === "exists")
      throw new StepError("bad_action", `session ${outcome.id} already exists`, { retryable: true });
    else if (outcome.kind !== "queue_not_empty") this.#standing = "fenced";
    return outcome.kind;
  }
}

/** Whether the session must be held before its next step, unless a person released it. */
function isBreakpoint(session: Session): boolean {
  const { hold_before } = session.options;
  if (!hold_before?.some((pattern) => matchesGlob(pattern, session.next_step_token))) return false;
  return startedAttempt(session)?.is_released !== true;
}

const newSession = (session: Session): SessionWrite => ({ kind: "create", session, worker: null });

type PreparedRows = ({ kind: "rows" } & StepRows) | { kind: "failed"; error: unknown };
const NO_ROWS: PreparedRows = { kind: "rows", sessions: [], actions: [], participants: [], written: () => {} };

const succeeds = (work: () => Promise<unknown>): Promise<boolean> =>
  work().then(
    () => true,
    () => false,
  );
