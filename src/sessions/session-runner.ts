import { Mutex } from "../concurrency/mutex.ts";
import { EverstepError } from "../domain/errors.ts";
import { now } from "../domain/ids.ts";
import { bouncedFrom, consumedBy, takenBack } from "../domain/receipt.ts";
import { changeStatus, isLive, type Session } from "../domain/session.ts";
import type { FrameOut } from "../domain/step-frame.ts";
import { fitsGlob } from "../domain/step-globs.ts";
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
  isWaitingOut,
  noAttempts,
  startedAttempt,
} from "./attempts.ts";
import { afterCrash, COMEBACK_MS, isSuspect, PROBATION_MS } from "./crash-guard.ts";
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
/** Milliseconds after which the start of a step that still runs is written, and how long a backoff must be to be written. */
const NOTED_AFTER_MS = 200;

/** What an action writes: the session as it is to be, where that changes, and how the action ends. */
type Change = { session?: Session /** Actions whose guidance is not in it any more. */; dropped?: string[] } & Pick<
  Batch,
  "actions" | "only_if_queue_empty"
>;

/** What the runner does right now, and what it holds for it: outside calls reach a wait only through this. */
type Activity =
  | { kind: "resting" }
  | { kind: "deciding" }
  | { kind: "delayed"; delay: InterruptibleDelay }
  | { kind: "queued"; slot: Slot }
  | { kind: "stepping"; step: RunningStep; noteTimer: NodeJS.Timeout; destroyTimer: NodeJS.Timeout | undefined }
  | { kind: "writing"; delay: InterruptibleDelay | undefined };

const RESTING: Activity = { kind: "resting" };
const DECIDING: Activity = { kind: "deciding" };
const WRITING: Activity = { kind: "writing", delay: undefined };

/**
 * Advances one session, alone. Its activity is one of these:
 *
 * - `resting`: no loop runs. The session waits, is paused or has ended, or the runner has left it. `wake` starts the loop, which
 *   goes through the others until there is nothing to do.
 * - `deciding`: it is about to look, under the mutex, at what the session is to do. A session that is `stopping` is ended, one
 *   that is `running` goes on as `queued`, any other rests.
 * - `queued`: it waits for one of the slots that bound how many steps run at once. A wake that finds the session no longer
 *   `running` cancels the request. With the slot granted it decides, and starts the step. The slot is released when the step is
 *   over; for a step on probation, when that is written.
 * - `stepping`: the moniker runs. `interrupt` and `shutDown` cut it short, `destroy` does so after a grace period.
 * - `writing`: what came of the step is committed. While the store does not take it, it is tried again after a delay.
 * - `delayed`: the next step is due after the session's interval, or after a backoff if this one failed. News ends an interval
 *   early, but not a backoff; a session that is no longer `running` has nothing to wait for. Also before the step of a suspect,
 *   whose last owner may come back (CRASH-4).
 *
 * Changes by actions (`change`) are made beside all of these, in their turn at the mutex. Its standing only ever goes from
 * `owner` to `leaving`, which starts no step any more, and to `fenced`, after which nothing that it does counts.
 *
 * RUNNER-1  Every change of the session is made under one mutex, so that each is made from the row that the one before left.
 *           The store refuses any other.
 * RUNNER-2  A step starts under the mutex as well: after a pause was taken in, no step starts.
 * RUNNER-3  A step that finishes is committed, whatever was asked meanwhile, unless it was cut short.
 * RUNNER-4  Guidance leaves `pending_guidance` in the commit of the step that was given it, or is bounced in the commit that
 *           ends the session or takes it back. What a step under way was given is not taken back.
 * RUNNER-5  A session that has nothing to do costs nothing: no timer, no loop.
 * RUNNER-6  A store out of reach delays a step's commit; only if the runtime stops meanwhile the step runs again. A step that
 *           the store refuses several times ends the session as `error` with the reason, so that nothing waits for it for good.
 * RUNNER-7  A step that may have brought the process down is marked before it runs again, runs alone when it is marked already,
 *           and is held when it did so repeatedly (crash-guard.ts).
 * RUNNER-8  A step is run and committed by one version of its moniker, the newest when it starts. What another version left as the
 *           state is migrated for the step; only what the step returns is stored, so that a step that runs again migrates again.
 * RUNNER-9  The start of a step marked `once` is committed, under the ownership of this runner, before the moniker is called, so
 *           that whoever calls it again can tell.
 * RUNNER-11  While what a step needs is out of reach, it is tried again for as long as the session allows; since when and until when is
 *           in the session's row, so that a restart neither hurries nor forgets. Each such attempt is written before it begins.
 * RUNNER-10  When a step began is written only once it has run for a while, so that a short one costs nothing more.
 */
export class SessionRunner {
  readonly #dependencies: RunnerDependencies;
  readonly #currentMoniker: () => VersionedMoniker;
  /** That of the step under way, or of the last one: a step is committed by the code that ran it. */
  #moniker: VersionedMoniker;
  /** RUNNER-8. The version that made the session's state; absent until it is looked up, or a step is committed here. */
  #stateVersion: { version: string | null | undefined } | undefined;
  readonly #mutex = new Mutex();
  readonly #delivered: DeliveredGuidance;
  readonly #trace: SessionTrace | undefined;
  #session: Session;
  #owner: Ownership;
  #standing: "owner" | "leaving" | "fenced" = "owner";
  #activity: Activity = RESTING;
  /** Runs while the activity is any but `resting`. */
  #loop: Promise<void> | undefined;
  /** Whether there may be something new since the loop last looked at the session. */
  #isWoken = false;
  #earlier: EarlierAttempts;
  /** RUNNER-4. From the start of a step until what came of it is written. */
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

  /** As it is now: it may be loaded again between two steps. */
  get moniker(): VersionedMoniker {
    return this.#currentMoniker();
  }

  /** The actions whose guidance the step under way was given; null where no step is. */
  get stepping(): readonly string[] | null {
    return this.#stepping;
  }

  /** Tells runners of one session apart: it may have been lost and claimed again meanwhile. */
  get epoch(): number {
    return this.#owner.epoch;
  }

  /** Nothing runs and nothing more will happen to the session here. */
  get isOver(): boolean {
    return this.#standing === "fenced" || !isLive(this.#session.status);
  }

  get isIdle(): boolean {
    return this.#activity.kind === "resting";
  }

  /** A change begins at once: nothing else is being written. */
  get isFree(): boolean {
    return this.#mutex.isFree;
  }

  /** Looks at the session again: takes up the work if there is some, ends a wait that has lost its purpose. */
  wake(): void {
    this.#isWoken = true;
    const { status } = this.#session;
    // What is new does not shorten a backoff: it would use up the attempts, or call on a provider that is down.
    const backsOff = this.#earlier.failures > 0 || this.#earlier.outage_since !== null;
    if (!backsOff || status !== "running") this.#endDelay();
    if (status !== "running" && this.#activity.kind === "queued") this.#activity.slot.cancel();
    if (this.#standing !== "owner" || this.isOver || this.#loop) return;
    this.#activity = DECIDING;
    this.#loop = this.#run().finally(() => {
      this.#activity = RESTING;
      this.#loop = undefined;
      // A call that came after the loop's last look at the session must not be lost.
      if (this.#isWoken) this.wake();
      if (this.#loop === undefined && this.#standing !== "fenced") this.#trace?.rest(this.#session);
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
      const { session, dropped = [], ...batch } = decided;
      if (dropped.length > 0)
        batch.actions = [...(batch.actions ?? []), ...(await this.#delivered.get(dropped)).map(takenBack)]; // RUNNER-4
      return this.#commit(session ?? this.#session, batch, { writesSession: session !== undefined });
    });
  }

  /** Cuts the step in flight short; it runs again with whatever guidance is there then. */
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

  /** Starts no further step. `cut` also ends the one in flight, which then runs again after a restart. */
  shutDown(cut: boolean): void {
    if (this.#standing === "owner") this.#standing = "leaving";
    if (cut && this.#activity.kind === "stepping") this.#activity.step.cut("shutdown");
    this.#endDelay();
  }

  /** The session is not this runner's any more: what it does from now on comes to nothing, so it stops. */
  fence(): void {
    this.#standing = "fenced";
    this.shutDown(true);
  }

  #endDelay(): void {
    if (this.#activity.kind === "delayed" || this.#activity.kind === "writing") this.#activity.delay?.interrupt();
  }

  async #run(): Promise<void> {
    // RUNNER-11: the last owner was waiting.
    let interval = isWaitingOut(this.#session) ? Date.parse(this.#session.retry_at ?? "") - Date.now() : 0;
    while (this.#standing === "owner") {
      // RUNNER-5: a session that rests or ended meanwhile waits for nothing.
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

  /** Runs the next step and writes what came of it. Answers how long to wait then; null where there is nothing to run. */
  async #advance(): Promise<number | null> {
    if (this.#session.status !== "running") return this.#settle(await this.#step(null));
    const { slots, probation } = this.#dependencies;
    if (!(await this.#isSuspected())) return this.#settle(await this.#inSlot(slots, (slot) => this.#step(slot)));
    // RUNNER-7: alone until it is written, since others would be marked along with it.
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
    const due = performance.now() + COMEBACK_MS;
    for (;;) {
      const left = due - performance.now();
      if (this.#standing !== "owner" || this.#session.status !== "running") return true;
      if (left <= 0) break;
      const delay = new InterruptibleDelay();
      this.#activity = { kind: "delayed", delay };
      await delay.wait(left);
    }
    // Out of reach, the store tells nothing; then the next owner looks again.
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

  /** Runs the next step, or answers null where there is nothing to run. */
  async #step(slot: Slot | null): Promise<StepOutcome | null> {
    // RUNNER-2: what the session is to do is decided under the mutex, and the step is under way before it is released.
    const stepping = await this.#mutex.run(() => this.#startStep(slot));
    if (!stepping) return null;
    try {
      return await stepping.step.outcome;
    } finally {
      clearTimeout(stepping.noteTimer);
      clearTimeout(stepping.destroyTimer);
      this.#activity = WRITING;
    }
  }

  async #startStep(slot: Slot | null): Promise<Extract<Activity, { kind: "stepping" }> | null> {
    // Before all else: what is decided holds until the step has begun.
    if (this.#trace && this.#session.status === "running") await this.#trace.prepare(this.#session);
    this.#isWoken = false;
    const { status } = this.#session;
    if (this.#standing !== "owner") return null;
    if (status === "stopping") await this.#end("destroyed");
    if (status !== "running") {
      // Who goes on after a pause waits anew.
      this.#earlier = { ...this.#earlier, outage_since: null, outage_tries: 0 };
      return null;
    }
    if (this.#dependencies.hold.holds(this.#session)) return null;
    if (!slot?.isGranted) {
      // It runs again by now; the loop asks for another slot.
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
      await this.#insist(() => this.#commit(held, {}));
      return null;
    }
    const mustMark =
      this.#earlier.may_have_crashed || startedAttempt(this.#session)?.once || isWaitingOut(this.#session);
    if (!mustMark) this.#earlier.begun += 1;
    else if (!(await this.#markStart())) return null;
    this.#stepping = firstSlice(this.#session).action_ids;
    const noteTimer = this.#noteStartLater();
    const stepping = { kind: "stepping" as const, step: this.#runStep(), noteTimer, destroyTimer: undefined };
    this.#activity = stepping;
    return stepping;
  }

  /** RUNNER-10. */
  #noteStartLater(): NodeJS.Timeout {
    const started = Date.now();
    const timer = setTimeout(() => {
      const step_started_at = new Date(started).toISOString();
      const noting = this.#mutex.run(async () => {
        const isRunning = this.#activity.kind === "stepping" && this.#activity.noteTimer === timer;
        if (isRunning && this.#standing === "owner")
          await this.#commit({ ...this.#session, ...this.#attemptsBefore(), step_started_at, retry_at: null }, {});
      });
      // The store is out of reach: nobody can look either.
      noting.catch(() => {});
    }, NOTED_AFTER_MS);
    return timer;
  }

  /** How many attempts at the step that runs came to nothing, for whoever looks. A step marked `once` has that in its row. */
  #attemptsBefore(): Partial<Session> {
    const earlier = { ...this.#earlier, begun: this.#earlier.begun - 1 };
    if (earlier.begun === 0 || startedAttempt(this.#session)?.once) return {};
    return { started_attempt: attemptAfter(this.#session, earlier) };
  }

  /** RUNNER-7, RUNNER-9, RUNNER-11. Writes what must be known of a step before it begins. Answers whether it may run. */
  async #markStart(): Promise<boolean> {
    const { may_have_crashed, failures, spent } = this.#earlier;
    const session = may_have_crashed ? afterCrash(this.#session) : this.#session;
    const earlier = may_have_crashed ? { ...earlierAttempts(session, false), failures, spent } : this.#earlier;
    const begun = earlier.begun + 1;
    const begins = session.status === "running" && startedAttempt(session)?.once;
    const again = isWaitingOut(session) ? { ...session, step_started_at: now(), retry_at: null } : session;
    const marked = begins ? beginOnce(session, begun, now()) : again;
    if (marked !== this.#session) await this.#insist(() => this.#commit(marked, {}));
    this.#earlier = { ...earlier, begun, may_have_crashed: false };
    // It may have been fenced meanwhile.
    return !this.isOver && this.#session.status === "running";
  }

  #runStep(): RunningStep {
    const session = this.#session;
    const { store, llm, tools, watch, keep_calls, onDelta } = this.#dependencies;
    let event_seq = 0;
    this.#moniker = this.#currentMoniker();
    return runStep(session, this.#moniker, {
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
      onShown: (shown) => onDelta({ ...shown, session, iteration: session.iteration + 1, event_seq: event_seq++ }),
    });
  }

  /** Writes what came of a step, if there was one. Answers how long to wait before the next one, in milliseconds. */
  async #settle(outcome: StepOutcome | null): Promise<number | null> {
    if (!outcome) return null;
    const spent = addSpending(this.#earlier.spent, outcome.spent);
    switch (outcome.kind) {
      case "done": {
        const { frame, latency_ms } = outcome;
        let rows = frame.actions ? await this.#rowsOf(frame) : NOTHING_ASKED;
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
            // Somebody else created a session that the frame names, just now.
            if (error instanceof StepError) rows = await this.#rowsOf(frame);
            throw error;
          } finally {
            written();
          }
        };
        await this.#mutex.run(() => this.#insist(write, failed));
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

  /** What a frame's actions write. Where they cannot be done the step has failed; a store out of reach is waited for. */
  async #rowsOf({ actions = [] }: FrameOut): Promise<PreparedRows> {
    if (actions.length === 0) return NOTHING_ASKED;
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
    // Only what is there: each list costs every step.
    const batch: Batch = { steps: [step] };
    const actions = [...consumed, ...(delivery?.actions ?? []), ...rows.actions];
    if (actions.length > 0) batch.actions = actions;
    if (rows.participants.length > 0) batch.participants = rows.participants;
    if (delivery) batch.messages = [delivery.message];
    if (result.cursor) batch.cursors = [result.cursor];
    await this.#commit(session, batch, { children: rows.sessions });
  }

  /** Nobody knows of what was used once the process is gone, nor that a step marked `once` was ended in order. */
  async #commitCut(spent: Spending): Promise<void> {
    const isOnce = startedAttempt(this.#session)?.once;
    if (spent.tokens === 0 && spent.cost_usd === 0 && !isOnce) return;
    const started_attempt = isOnce ? attemptAfter(this.#session, this.#earlier) : this.#session.started_attempt;
    const cut = { ...charged(this.#session, spent), started_attempt, step_started_at: null };
    await this.#insist(() => this.#commit(cut, {}));
  }

  async #retryOrFail(error: unknown, latency_ms: number): Promise<number> {
    const { status, options } = this.#session;
    this.#earlier = afterFailure(this.#earlier, options, error);
    const wait = nextAttemptIn(options, error, this.#earlier);
    if (wait !== null && (status === "running" || status === "paused")) {
      this.#dependencies.observer.retried(this.#session, error);
      const isNoted = wait >= NOTED_AFTER_MS || startedAttempt(this.#session)?.once || isOutage(options, error);
      if (isNoted) await this.#noteRetry(wait, error);
      return wait;
    }
    await this.#mutex.run(async () => {
      // A session that is being destroyed ends as destroyed, not as failed.
      if (this.#session.status === "stopping") return;
      const earlier = this.#earlier;
      this.#earlier = noAttempts();
      const { spent } = earlier;
      await this.#insist(
        () => this.#commitError({ error: describeError(error), latency_ms, spent, earlier }),
        (refusal) => this.#commitError({ error: describeError(refusal), latency_ms, spent, earlier }),
      );
    });
    return 0;
  }

  /** Best effort: the next commit says as much. */
  async #noteRetry(wait: number, error: unknown): Promise<void> {
    const retry_at = new Date(Date.now() + wait).toISOString();
    const { outage_since } = this.#earlier;
    await this.#mutex
      .run(async () => {
        // CRASH-6: this attempt ended in order.
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
    await this.#insist(() => this.#commit(this.#stopped(reason, this.#earlier.spent), {}));
  }

  #stopped(reason: NonNullable<Session["stop_reason"]>, spent: Spending): Session {
    return changeStatus(charged(this.#session, spent), "stopped", reason);
  }

  /**
   * RUNNER-6. What an action asked for is not written here: the dispatcher tries that again itself. Where the store keeps refusing,
   * `instead` writes how that ends.
   */
  async #insist(write: () => Promise<unknown>, instead?: (refusal: unknown) => Promise<unknown>): Promise<void> {
    this.#activity = WRITING;
    const { revision } = this.#owner;
    for (let refusals = 0; ; ) {
      try {
        return void (await write());
      } catch (error) {
        if (this.#owner.revision !== revision) throw error; // It was written, and what came after it failed.
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

  /** Commits the session as it is to be, with what belongs to it. RUNNER-4: an end for good bounces what was not used. */
  async #commit(
    session: Session,
    rows: Omit<Batch, "sessions">,
    { children = [], writesSession = true }: { children?: Session[]; writesSession?: boolean } = {},
  ): Promise<CommitOutcome["kind"]> {
    const endsForGood = session.status === "done" || session.status === "stopped";
    const bounced = endsForGood
      ? (await this.#delivered.get(session.pending_action_ids)).map((action) => bouncedFrom(action, session))
      : [];
    const next = bounced.length > 0 ? { ...session, pending_guidance: [], pending_action_ids: [] } : session;
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
      observer.committed(performance.now() - started);
      for (const step of rows.steps ?? []) {
        if (step.status === "ok") this.#stateVersion = { version: step.moniker_version };
        observer.stepCommitted(step);
        this.#trace?.committed(step, actions);
      }
      this.#delivered.update(actions);
    } else if (outcome.kind === "exists")
      throw new StepError("bad_action", `session ${outcome.id} exists already`, { retryable: true });
    else if (outcome.kind !== "queue_not_empty") this.#standing = "fenced";
    return outcome.kind;
  }
}

/** A step before which the session is to be held, unless a person let it pass. */
function isBreakpoint(session: Session): boolean {
  const { hold_before } = session.options;
  if (!hold_before?.some((pattern) => fitsGlob(pattern, session.next_step_token))) return false;
  return startedAttempt(session)?.is_released !== true;
}

const newSession = (session: Session): SessionWrite => ({ kind: "create", session, worker: null });

type PreparedRows = ({ kind: "rows" } & StepRows) | { kind: "failed"; error: unknown };
const NOTHING_ASKED: PreparedRows = { kind: "rows", sessions: [], actions: [], participants: [], written: () => {} };

const succeeds = (work: () => Promise<unknown>): Promise<boolean> =>
  work().then(
    () => true,
    () => false,
  );
