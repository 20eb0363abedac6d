import type { JsonObject, JsonValue } from "../../domain/json.ts";
import type { FrameOut } from "../../domain/step-frame.ts";
import type { ToolOutcome } from "../../tools/tool.ts";
import type { ModelMessage, ToolCall } from "../llm/model-turn.ts";
import { approvalOf, doubtOf, readApproval, readDoubt } from "./decisions.ts";
import { type Heard, hear, textOf, withHeard } from "./heard.ts";
import { goOn, isOnce, type LoopStep, rest } from "./loop-frames.ts";
import type { LoopState } from "./loop-state.ts";
import { roomFor, withinLimit } from "./window.ts";

type Awaited = NonNullable<LoopState["awaited"]>;

/** Makes the next call, or tells the model what a person said instead. */
export async function act(step: LoopStep, before: LoopState): Promise<FrameOut> {
  const { said, reports } = hear(step.frame.guidance ?? []);
  const reported = withHeard(before, { said: [], reports });
  const { awaited } = before;
  if (!awaited) return call(step, withHeard(reported, { said, reports: [] }));
  return byAwaited(step, reported, awaited, said);
}

/** What was said first is the answer to what the call waits for; the rest is for the model. */
async function byAwaited(
  step: LoopStep,
  reported: LoopState,
  awaited: Awaited,
  said: Heard["said"],
): Promise<FrameOut> {
  if (awaited.kind === "in_doubt") return byDoubt(step, reported, said);
  const [first, ...others] = said;
  const state = withHeard(reported, { said: awaited.kind === "time" ? said : others, reports: [] });
  switch (awaited.kind) {
    case "approval": {
      const [next] = state.calls;
      if (!first) return rest(step, state, { ask: approvalOf(next as ToolCall) });
      const approval = readApproval(first);
      if (approval.kind === "told") return told(step, state, approval.text, approval.is_error);
      const approved = withArgs(state, approval.args);
      const always = approval.is_always && next ? [...new Set([...state.always, next.name])] : state.always;
      return call(step, { ...approved, always, is_approved: true });
    }
    case "person":
      return byPerson(step, state, awaited, first);
    case "time":
      return byTime(step, state, awaited, first !== undefined);
  }
  return awaited satisfies never;
}

/** Only an answer decides: what else is said is for the model, and the question stays. */
async function byDoubt(step: LoopStep, reported: LoopState, said: Heard["said"]): Promise<FrameOut> {
  const at = said.findIndex((one) => readDoubt(one) !== null);
  const state = withHeard(reported, { said: said.filter((_, index) => index !== at), reports: [] });
  const answer = said[at];
  const decided = answer ? readDoubt(answer) : null;
  if (decided === null) return doubt(step, state);
  return decided.kind === "again" ? call(step, state) : told(step, state, decided.text, decided.is_error);
}

async function byPerson(
  step: LoopStep,
  state: LoopState,
  awaited: Extract<Awaited, { kind: "person" }>,
  first: Heard["said"][number] | undefined,
): Promise<FrameOut> {
  const { ask, until, resume } = awaited;
  if (first) {
    const answer: JsonValue = first.answer ?? first.message.text;
    if (resume !== null) return call(step, state, { answer, resume });
    const { name } = first.message;
    return told(step, state, name === undefined ? textOf(answer) : JSON.stringify({ answer, from: name }), false);
  }
  if (until !== undefined && Date.parse(until) <= Date.now())
    return told(step, state, `Nobody answered until ${until}.`, true);
  // A session that it started has ended meanwhile; the question stands.
  return rest(step, state, { ask, ...(until !== undefined && { wait: { until } }) });
}

async function byTime(
  step: LoopStep,
  state: LoopState,
  { until, session_ids = [] }: Extract<Awaited, { kind: "time" }>,
  isTold: boolean,
): Promise<FrameOut> {
  const reports = state.reports.filter(({ session_id }) => session_ids.includes(session_id));
  const areAllIn = session_ids.length > 0 && session_ids.every((id) => reports.some((one) => one.session_id === id));
  const isTime = until !== undefined && Date.parse(until) <= Date.now();
  if (!areAllIn && !isTime && !isTold) return rest(step, state, { wait: until === undefined ? {} : { until } });
  const seen = new Set(reports.map(({ session_id }) => session_id));
  const missing = session_ids.filter((id) => !seen.has(id));
  const lines = [
    ...reports.map(({ text }) => text),
    ...(missing.length > 0 ? [`Not ended yet: ${missing.join(", ")}.`] : []),
    ...(isTold ? ["The wait ended because somebody said something."] : []),
    `It is ${new Date().toISOString()}.`,
  ];
  const withTold = state.reports.map((report) => (seen.has(report.session_id) ? { ...report, is_told: true } : report));
  return told(step, { ...state, reports: withTold }, lines.join("\n"), false);
}

/** LOOP-3: a call that must not happen twice unasked is not made where it may have happened. */
async function call(
  step: LoopStep,
  state: LoopState,
  answered?: { answer: JsonValue; resume: JsonValue },
): Promise<FrameOut> {
  const [next] = state.calls as [ToolCall];
  const { context } = step;
  const tool = step.tools.find(({ name }) => name === next.name);
  if (state.is_once && context.attempt.number > 1) return doubt(step, state);
  if (!tool) return told(step, state, `There is no tool named ${next.name}, or its server is not connected.`, true);
  // What it is and may do can have changed since the step before, or was not known there: its server was away.
  const mustAsk = tool.policy === "ask" && !state.is_approved && !state.always.includes(next.name);
  const mustMark = isOnce(tool) && !state.is_once;
  if ((mustAsk || mustMark) && !answered) return goOn(step, state);
  const outcome = await context.tools.call(next.name, next.args, answered);
  return byOutcome(step, state, outcome);
}

async function byOutcome(step: LoopStep, state: LoopState, outcome: ToolOutcome): Promise<FrameOut> {
  switch (outcome.kind) {
    case "result":
      return told(step, state, outcome.text, outcome.is_error, outcome.actions);
    case "ask": {
      const { ask, until, resume } = outcome;
      const awaited: Awaited = { kind: "person", ask, resume, ...(until !== undefined && { until }) };
      return rest(step, { ...state, awaited }, { ask, ...(until !== undefined && { wait: { until } }) });
    }
    case "wait": {
      const { until, session_ids } = outcome;
      const awaited: Awaited = {
        kind: "time",
        ...(until !== undefined && { until }),
        ...(session_ids && { session_ids }),
      };
      return byTime(step, { ...state, awaited }, awaited, false);
    }
  }
  return outcome satisfies never;
}

function doubt(step: LoopStep, state: LoopState): FrameOut {
  const [next] = state.calls as [ToolCall];
  return rest(step, { ...state, awaited: { kind: "in_doubt" } }, { ask: doubtOf(next) });
}

/** The call has its result: on to the next one, or to the model with all that was said meanwhile. */
async function told(
  step: LoopStep,
  state: LoopState,
  text: string,
  is_error: boolean,
  actions?: FrameOut["actions"],
): Promise<FrameOut> {
  const [{ call_id, name }, ...calls] = state.calls as [ToolCall, ...ToolCall[]];
  const result: ModelMessage = withinLimit({ role: "tool", call_id, name, text, is_error }, roomFor(step.llm, state));
  const isLast = calls.length === 0;
  const next: LoopState = {
    ...state,
    messages: [...state.messages, result, ...(isLast ? state.heard : [])],
    heard: isLast ? [] : state.heard,
    calls,
    finished: isLast ? 0 : state.finished + 1,
    turn: isLast ? state.turn + 1 : state.turn,
    awaited: null,
    is_approved: false,
  };
  return goOn(step, next, { ...(actions && { actions }) });
}

function withArgs(state: LoopState, args: JsonObject | null): LoopState {
  const [next, ...others] = state.calls as [ToolCall, ...ToolCall[]];
  return args === null ? state : { ...state, calls: [{ ...next, args }, ...others] };
}
