import type { SessionCursor } from "../domain/conversation.ts";
import { EverstepError } from "../domain/errors.ts";
import type { StepDelta } from "../domain/event.ts";
import { CachedIsoTime } from "../domain/ids.ts";
import { copyJson, type JsonObject } from "../domain/json.ts";
import { DEFAULT_STEP_TIMEOUT_S, type Session } from "../domain/session.ts";
import type { FrameIn, FrameOut } from "../domain/step-frame.ts";
import type { VersionedMoniker } from "../monikers/catalog.ts";
import type { StepContext, StepProgress } from "../monikers/moniker.ts";
import { StepError } from "../monikers/moniker.ts";
import type { ToolFactory } from "../tools/tool.ts";
import type { StepSpan } from "../tracing/agent-spans.ts";
import { checkFrame } from "./check-frame.ts";
import { firstSlice, type GuidanceSlice } from "./guidance-slice.ts";
import { runtimeLeftMs } from "./limits.ts";
import type { RunnerDependencies } from "./runner-dependencies.ts";
import { addCall, addCost, costOf, noSpending, type Spending, storedCall, tokenCount } from "./spending.ts";
import { countRunning, inStepScope, outsideStepScope, type StepScope } from "./step-scope.ts";
import type { UnreadMessages } from "./unread-messages.ts";

/** A step that runs longer than this, in milliseconds, counts as long. */
const LONG_STEP_MS = 200;

/** Why a step was cut short from outside; none of these counts as a failure of the step. */
type CutReason = "interrupted" | "destroyed" | "shutdown" | "out_of_time";

export type StepOutcome =
  | {
      kind: "done";
      frame: FrameOut;
      slice: GuidanceSlice;
      latency_ms: number;
      spent: Spending;
      cursor: SessionCursor | null;
    }
  | { kind: "failed"; error: unknown; latency_ms: number; spent: Spending }
  | { kind: "cut"; reason: CutReason; spent: Spending };

export type RunningStep = { outcome: Promise<StepOutcome>; cut: (reason: CutReason) => void };

export type StepEnvironment = Pick<StepContext, "attempt"> &
  Pick<RunnerDependencies, "llm" | "watch" | "keep_calls"> & {
    tools: ToolFactory;
    unreadMessages: Pick<UnreadMessages, "unread" | "cursor">;
    onOutput: (output: StepOutput) => void;
    /** Called once after the step has run for `LONG_STEP_MS`. */
    onLong?: () => void;
    /** The version that produced the state; undefined if it needs no migration. */
    stateVersion: () => Promise<string | null | undefined>;
    is_rerun?: true;
    /** Set if steps are traced. */
    trace?: Pick<StepSpan, "traceparent" | "called"> | undefined;
  };

/** What a step shows while it runs: text or a tool's name, and the actions whose guidance it has. */
type StepOutput = Pick<StepDelta, "text" | "tool" | "action_ids">;

class Cut extends Error {
  readonly reason: CutReason;
  constructor(reason: CutReason) {
    super(`the step was cut short: ${reason}`);
    this.reason = reason;
  }
}

/**
 * Runs one attempt at a session's next step, with as much guidance as it takes. It ends when the moniker returns or the signal
 * aborts.
 */
export function runStep(session: Session, moniker: VersionedMoniker, environment: StepEnvironment): RunningStep {
  const run = new StepRun(session, environment);
  return { outcome: run.start(moniker), cut: (reason) => run.abort(new Cut(reason)) };
}

class StepRun {
  readonly #session: Session;
  readonly #environment: StepEnvironment;
  readonly #slice: GuidanceSlice;
  readonly #controller = new AbortController();
  /** The moniker's result, or the reason of the abort, whichever comes first. */
  readonly #returned = Promise.withResolvers<unknown>();
  readonly #started = performance.now();
  readonly #spent = noSpending();
  #hasModel = false;
  #deadline: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(session: Session, environment: StepEnvironment) {
    this.#session = session;
    this.#environment = environment;
    this.#slice = firstSlice(session);
  }

  abort(reason: Error): void {
    if (this.#isOver) return;
    this.#controller.abort(reason);
    this.#returned.reject(reason);
  }

  async start(moniker: VersionedMoniker): Promise<StepOutcome> {
    const { watch, unreadMessages } = this.#environment;
    this.#setTimer(moniker);
    const unwatch = watch(this.#session.session_id);
    const scope = this.#scope();
    const uncount = countRunning(scope);
    let step: unknown;
    try {
      const llm = this.#llm();
      step = inStepScope(scope, () =>
        moniker.migrate || llm instanceof Promise
          ? this.#prepareAndStep(moniker, llm)
          : moniker.step(this.#frame(), this.#context(llm)),
      );
      const { promise, resolve, reject } = this.#returned;
      Promise.resolve(step).then(resolve, reject);
      const returned = await promise;
      const latency_ms = this.#latency();
      const frame = checkFrame(returned, this.#session.context);
      const { cursor } = unreadMessages;
      return { kind: "done", frame, slice: this.#slice, latency_ms, spent: this.#spent, cursor };
    } catch (error) {
      const { signal } = this.#controller;
      // An aborted model call reports its cost a moment later.
      if (this.#hasModel && signal.aborted) await settled(step, USAGE_GRACE_MS);
      const cause: unknown = signal.aborted ? signal.reason : error;
      if (cause instanceof Cut) return { kind: "cut", reason: cause.reason, spent: this.#spent };
      return { kind: "failed", error: cause, latency_ms: this.#latency(), spent: this.#spent };
    } finally {
      this.#isOver = true;
      unwatch();
      uncount();
      clearTimeout(this.#timer);
    }
  }

  /** A missing model is not worth a retry. */
  #llm(): ReturnType<StepEnvironment["llm"]> {
    const cannot = (error: unknown): never => {
      if (!(error instanceof EverstepError)) throw error;
      throw new StepError("model_missing", error.message, { retryable: false, cause: error });
    };
    try {
      const llm = this.#environment.llm(this.#session.options);
      this.#hasModel = llm !== null;
      return llm instanceof Promise ? llm.catch(cannot) : llm;
    } catch (error) {
      return cannot(error);
    }
  }

  async #prepareAndStep(moniker: VersionedMoniker, opening: ReturnType<StepEnvironment["llm"]>): Promise<FrameOut> {
    const llm = await opening;
    if (!moniker.migrate) return moniker.step(this.#frame(), this.#context(llm));
    const from = await this.#environment.stateVersion();
    const version = moniker.version ?? null;
    const frame = this.#frame();
    const isCurrent = from === undefined || from === version;
    const state = isCurrent ? frame.state : await migrate(moniker, frame.state, from);
    return moniker.step({ ...frame, state }, this.#context(llm));
  }

  /** The moniker gets a copy of the state, so that changes in place do not reach the stored one. */
  #frame(): FrameIn {
    const { guidance } = this.#slice;
    const frame: FrameIn = { step: this.#session.next_step_token, state: copyJson(this.#session.context) };
    return guidance.length > 0 ? { ...frame, guidance: copyJson(guidance) } : frame;
  }

  #latency(): number {
    return performance.now() - this.#started;
  }

  #context(llm: StepContext["llm"]): StepContext {
    const { agent_id, session_id, conversation_id, iteration, params, options } = this.#session;
    const { tools, attempt, unreadMessages, is_rerun, trace } = this.#environment;
    const step = {
      signal: this.#controller.signal,
      ids: { agent_id, session_id, conversation_id, iteration: iteration + 1 },
      ...(this.#deadline !== undefined && { deadline: this.#deadline }),
      emit: (progress: StepProgress) => this.#emit(progress),
      ...(is_rerun && { is_rerun }),
      ...(trace && { traceparent: trace.traceparent }),
    };
    return {
      ...step,
      params: copyJson(params),
      attempt,
      llm,
      tools: tools({ ...step, options }),
      unread: (limit) => unreadMessages.unread(limit),
    };
  }

  /** Most steps are short, so they get one timer: a limit further away is set when that one fires. */
  #setTimer({ remote }: VersionedMoniker): void {
    const { step_timeout_s = DEFAULT_STEP_TIMEOUT_S } = this.#session.options;
    const nowMs = Date.now();
    const stepMs = step_timeout_s * 1000;
    const leftMs = runtimeLeftMs(this.#session, nowMs);
    const limitMs = Math.min(stepMs, leftMs);
    const isLimited = limitMs <= LONGEST_TIMER_MS;
    if (isLimited) this.#deadline = lastDeadline.textOf(nowMs + limitMs);
    const abort = (): void =>
      this.abort(leftMs <= stepMs ? new Cut("out_of_time") : tookTooLong(step_timeout_s, remote));
    if (limitMs <= LONG_STEP_MS) this.#timer = setTimeout(abort, limitMs);
    else
      this.#timer = setTimeout(() => {
        if (isLimited) this.#timer = setTimeout(abort, limitMs - LONG_STEP_MS);
        this.#environment.onLong?.();
      }, LONG_STEP_MS);
  }

  #emit(progress: StepProgress): void {
    if (this.#isOver) return;
    if (progress.kind === "usage") {
      this.#spent.tokens += tokenCount(progress.tokens);
      this.#spent.cost_usd = addCost(this.#spent.cost_usd, costOf(progress.cost_usd));
      return;
    }
    if (progress.kind === "call") {
      addCall(this.#spent, storedCall(progress.call, this.#environment.keep_calls));
      this.#environment.trace?.called(progress.call, progress.span);
      return;
    }
    const { action_ids } = this.#slice;
    const { onOutput } = this.#environment;
    const output = progress.kind === "tool" ? { text: "", tool: progress.name } : { text: progress.text };
    outsideStepScope(() => onOutput({ ...output, action_ids }));
  }

  #scope(): StepScope {
    return {
      session_id: this.#session.session_id,
      iteration: this.#session.iteration + 1,
      moniker: this.#session.moniker,
      fail: (error) => {
        this.abort(strayError(error));
        return !this.#isOver;
      },
    };
  }
}

/** With the stack: nothing else shows where in the moniker it came from. */
const strayError = (error: unknown): StepError => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const message = `the step caused an error that it did not catch: ${text}`;
  return new StepError("stray_error", message, { retryable: true, cause: error });
};

/** Migrates the state to the moniker's current version. The outcome would be the same every time, so a failure is not retried. */
async function migrate(moniker: VersionedMoniker, state: JsonObject, from: string | null): Promise<JsonObject> {
  try {
    const migrated = await moniker.migrate?.(state, from);
    return checkFrame({ step: "", next_step: "", state: migrated, done: false }).state;
  } catch (error) {
    const versions = `from version ${from ?? "unknown"} to ${moniker.version ?? "unknown"}`;
    const reason = `the state could not be migrated ${versions}: ${error instanceof Error ? error.message : String(error)}`;
    throw new StepError("migrate_failed", reason, { retryable: false, cause: error });
  }
}

function tookTooLong(limit_s: number, remote: string | undefined): StepError {
  const who = remote === undefined ? "" : `: ${remote} did not answer in time`;
  return new StepError("timeout", `the step took longer than ${limit_s} s${who}`, { retryable: true });
}

/** How long a step that was cut short may take to report its token usage, in milliseconds. */
const USAGE_GRACE_MS = 100;

/** Waits until the work has settled, at most `most_ms`. */
async function settled(work: unknown, most_ms: number): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, most_ms);
  await Promise.race([Promise.resolve(work).catch(() => {}), limit.promise]);
  clearTimeout(timer);
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;
const lastDeadline = new CachedIsoTime();
