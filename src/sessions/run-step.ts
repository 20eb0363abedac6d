import type { SessionCursor } from "../domain/conversation.ts";
import type { StepDelta } from "../domain/event.ts";
import { copyJson } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";
import type { FrameIn, FrameOut } from "../domain/step-frame.ts";
import type { Moniker, StepContext } from "../monikers/moniker.ts";
import { StepError } from "../monikers/moniker.ts";
import { checkFrame } from "./check-frame.ts";
import { firstSlice } from "./guidance-slice.ts";
import { runtimeLeftMs } from "./limits.ts";
import type { RunnerDependencies } from "./runner-dependencies.ts";
import type { Taken } from "./step-commit.ts";
import { inStepScope, outsideStepScope, type StepScope } from "./step-scope.ts";
import type { UnreadMessages } from "./unread-messages.ts";

/** Why a step was cut short from outside; none of these is the step's own failure. */
type CutReason = "interrupted" | "destroyed" | "shutdown" | "out_of_time";

export type StepOutcome =
  | { kind: "done"; frame: FrameOut; taken: Taken; latency_ms: number; tokens: number; cursor: SessionCursor | null }
  | { kind: "failed"; error: unknown; latency_ms: number; tokens: number }
  | { kind: "cut"; reason: CutReason; tokens: number };

export type RunningStep = { outcome: Promise<StepOutcome>; cut: (reason: CutReason) => void };

export type StepEnvironment = Pick<StepContext, "llm" | "tools"> &
  Pick<RunnerDependencies, "watch"> & { unreadMessages: UnreadMessages; onShown: (shown: Shown) => void };

/** What a step shows while it runs: text, or the name of a tool, and whose guidance it has. */
type Shown = Pick<StepDelta, "text" | "tool" | "action_ids">;

class Cut extends Error {
  readonly reason: CutReason;
  constructor(reason: CutReason) {
    super(`the step was cut short: ${reason}`);
    this.reason = reason;
  }
}

/** Runs a session's next step once, with as much guidance as it takes. It ends when the moniker ends or the signal aborts, whichever comes first. */
export function runStep(session: Session, moniker: Moniker, given: StepEnvironment): RunningStep {
  const { llm, tools, watch, unreadMessages, onShown } = given;
  const controller = new AbortController();
  const taken = firstSlice(session);
  const { action_ids } = taken;
  const started = performance.now();
  let tokens = 0;
  let over = false;
  const context: StepContext = {
    params: copyJson(session.params),
    signal: controller.signal,
    ids: {
      agent_id: session.agent_id,
      session_id: session.session_id,
      conversation_id: session.conversation_id,
      iteration: session.iteration + 1,
    },
    llm,
    tools,
    unread: (limit) => unreadMessages.unread(limit),
    emit(news) {
      if (over) return;
      if (news.kind === "usage") tokens += tokenCount(news.tokens);
      else
        outsideStepScope(() =>
          onShown({ ...(news.kind === "tool" ? { text: "", tool: news.name } : { text: news.text }), action_ids }),
        );
    },
  };
  const aborted = Promise.withResolvers<never>();
  const abort = (reason: Error): void => {
    controller.abort(reason);
    aborted.reject(reason);
  };
  const scope: StepScope = {
    session_id: session.session_id,
    iteration: session.iteration + 1,
    fail(error) {
      if (!over) abort(strayError(error));
      return !over;
    },
  };
  const run = async (): Promise<StepOutcome> => {
    const timer = deadline(session, abort);
    const unwatch = watch(session.session_id);
    let step: unknown;
    try {
      step = inStepScope(scope, () => moniker.step(frameOf(session, taken), context));
      const returned = await Promise.race([aborted.promise, step]);
      const latency_ms = performance.now() - started;
      return { kind: "done", frame: checkFrame(returned), taken, latency_ms, tokens, cursor: unreadMessages.cursor };
    } catch (error) {
      // A model that is cut off tells what it cost a moment later.
      if (llm && controller.signal.aborted) await settled(step, LAST_WORDS_MS);
      const cause: unknown = controller.signal.aborted ? controller.signal.reason : error;
      if (cause instanceof Cut) return { kind: "cut", reason: cause.reason, tokens };
      return { kind: "failed", error: cause, latency_ms: performance.now() - started, tokens };
    } finally {
      over = true;
      unwatch();
      clearTimeout(timer);
    }
  };
  return { outcome: run(), cut: (reason) => abort(new Cut(reason)) };
}

/** With the stack, since nothing else tells where in the moniker it came from. */
const strayError = (error: unknown): StepError => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const message = `the step left an error behind that it did not catch: ${text}`;
  return new StepError("stray_error", message, { retryable: true, cause: error });
};

/** What a moniker tells is not checked by a compiler; what is no count must not spoil the sum. */
const tokenCount = (tokens: number): number => (Number.isFinite(tokens) && tokens > 0 ? Math.round(tokens) : 0);

/** The moniker gets a copy of the state: what it does to it in place must not reach the stored one. */
function frameOf(session: Session, { guidance }: Taken): FrameIn {
  const frame: FrameIn = { step: session.next_step_token, state: copyJson(session.context) };
  return guidance.length > 0 ? { ...frame, guidance: copyJson(guidance) } : frame;
}

function deadline({ options, created_at }: Session, abort: (reason: Error) => void): NodeJS.Timeout | undefined {
  const stepMs = (options.step_timeout_s ?? Number.POSITIVE_INFINITY) * 1000;
  const leftMs = runtimeLeftMs({ options, created_at }, Date.now());
  const soonest = Math.min(stepMs, leftMs);
  if (soonest > LONGEST_TIMER_MS) return undefined;
  const reason =
    leftMs <= stepMs
      ? new Cut("out_of_time")
      : new StepError("timeout", `the step took longer than ${options.step_timeout_s} s`, { retryable: true });
  return setTimeout(() => abort(reason), soonest);
}

/** Milliseconds that a step which was cut short has to tell the tokens it used. */
const LAST_WORDS_MS = 100;

/** Waits until work has ended either way, but not longer. */
async function settled(work: unknown, most_ms: number): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, most_ms);
  await Promise.race([Promise.resolve(work).catch(() => {}), limit.promise]);
  clearTimeout(timer);
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;
