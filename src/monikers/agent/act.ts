import type { JsonObject, JsonValue } from "../../domain/json.ts";
import type { FrameOut } from "../../domain/step-frame.ts";
import type { ToolOutcome } from "../../tools/tool.ts";
import type { ModelMessage, ToolCall } from "../llm/model-turn.ts";
import { approvalOf, doubtOf, readApproval, readDoubt } from "./decisions.ts";
import { isOnce, type LoopStep, rest, toNextCall } from "./loop-frames.ts";
import type { LoopState } from "./loop-state.ts";
import { type ParsedGuidance, parseGuidance, textOf, withGuidance } from "./parse-guidance.ts";
import { roomFor, withinLimit } from "./window.ts";

type Awaited = NonNullable<LoopState["awaited"]>;

/** Makes the next call, or gives the model a person's decision instead. */
export async function act(step: LoopStep, before: LoopState): Promise<FrameOut> {
  const { inputs, reports } = parseGuidance(step.frame.guidance ?? []);
  const reported = withGuidance(before, { inputs: [], reports });
  const { awaited } = before;
  if (!awaited) return call(step, withGuidance(reported, { inputs, reports: [] }));
  return applyInputs(step, reported, awaited, inputs);
}

/** The first input answers what the call waits for; the rest goes to the model. */
async function applyInputs(
  step: LoopStep,
  reported: LoopState,
  awaited: Awaited,
  inputs: ParsedGuidance["inputs"],
): Promise<FrameOut> {
  if (awaited.kind === "in_doubt") return decideDoubt(step, reported, inputs);
  const [first, ...others] = inputs;
  const state = withGuidance(reported, { inputs: awaited.kind === "time" ? inputs : others, reports: [] });
  switch (awaited.kind) {
    case "approval": {
      const [next] = state.calls;
      if (!first) return rest(step, state, { ask: approvalOf(next as ToolCall) });
      const approval = readApproval(first);
      if (approval.kind === "result") return finishCall(step, state, approval.text, approval.is_error);
      const approved = withArgs(state, approval.args);
      const always = approval.is_always && next ? [...new Set([...state.always, next.name])] : state.always;
      return call(step, { ...approved, always, is_approved: true });
    }
    case "person":
      return decideAnswer(step, state, awaited, first);
    case "time":
      return decideWait(step, state, awaited, first !== undefined);
  }
  return awaited satisfies never;
}

/** Only an answer decides: other inputs go to the model, and the question stays open. */
async function decideDoubt(step: LoopStep, reported: LoopState, inputs: ParsedGuidance["inputs"]): Promise<FrameOut> {
  const at = inputs.findIndex((one) => readDoubt(one) !== null);
  const state = withGuidance(reported, { inputs: inputs.filter((_, index) => index !== at), reports: [] });
  const answer = inputs[at];
  const decided = answer ? readDoubt(answer) : null;
  if (decided === null) return doubt(step, state);
  return decided.kind === "again" ? call(step, state) : finishCall(step, state, decided.text, decided.is_error);
}

async function decideAnswer(
  step: LoopStep,
  state: LoopState,
  awaited: Extract<Awaited, { kind: "person" }>,
  first: ParsedGuidance["inputs"][number] | undefined,
): Promise<FrameOut> {
  const { ask, until, resume } = awaited;
  if (first) {
    const answer: JsonValue = first.answer ?? first.message.text;
    if (resume !== null) return call(step, state, { answer, resume });
    const { name } = first.message;
    return finishCall(step, state, name === undefined ? textOf(answer) : JSON.stringify({ answer, from: name }), false);
  }
  if (until !== undefined && Date.parse(until) <= Date.now())
    return finishCall(step, state, `Nobody answered until ${until}.`, true);
  // A session that it started has ended; the question stays open.
  return rest(step, state, { ask, ...(until !== undefined && { wait: { until } }) });
}

async function decideWait(
  step: LoopStep,
  state: LoopState,
  { until, session_ids = [] }: Extract<Awaited, { kind: "time" }>,
  isInterrupted: boolean,
): Promise<FrameOut> {
  const reports = state.reports.filter(({ session_id }) => session_ids.includes(session_id));
  const haveAllEnded =
    session_ids.length > 0 && session_ids.every((id) => reports.some((one) => one.session_id === id));
  const isTime = until !== undefined && Date.parse(until) <= Date.now();
  if (!haveAllEnded && !isTime && !isInterrupted)
    return rest(step, state, { wait: until === undefined ? {} : { until } });
  const reported = new Set(reports.map(({ session_id }) => session_id));
  const missing = session_ids.filter((id) => !reported.has(id));
  const lines = [
    ...reports.map(({ text }) => text),
    ...(missing.length > 0 ? [`Not ended yet: ${missing.join(", ")}.`] : []),
    ...(isInterrupted ? ["The wait ended because somebody said something."] : []),
    `It is ${new Date().toISOString()}.`,
  ];
  const allReports = state.reports.map((report) =>
    reported.has(report.session_id) ? { ...report, is_told: true } : report,
  );
  return finishCall(step, { ...state, reports: allReports }, lines.join("\n"), false);
}

/** LOOP-3: a call that must not be repeated without consent is not made if it may have run already. */
async function call(
  step: LoopStep,
  state: LoopState,
  answered?: { answer: JsonValue; resume: JsonValue },
): Promise<FrameOut> {
  const [next] = state.calls as [ToolCall];
  const { context } = step;
  const tool = step.tools.find(({ name }) => name === next.name);
  if (state.is_once && context.attempt.number > 1) return doubt(step, state);
  if (!tool)
    return finishCall(step, state, `There is no tool named ${next.name}, or its server is not connected.`, true);
  // The tool's properties and policy may have changed since the previous step, or were unknown there because its server was
  // away.
  const mustAsk = tool.policy === "ask" && !state.is_approved && !state.always.includes(next.name);
  const mustMark = isOnce(tool) && !state.is_once;
  if ((mustAsk || mustMark) && !answered) return toNextCall(step, state);
  const outcome = await context.tools.call(next.name, next.args, answered);
  return applyOutcome(step, state, outcome);
}

async function applyOutcome(step: LoopStep, state: LoopState, outcome: ToolOutcome): Promise<FrameOut> {
  switch (outcome.kind) {
    case "result":
      return finishCall(step, state, outcome.text, outcome.is_error, outcome.actions);
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
      return decideWait(step, { ...state, awaited }, awaited, false);
    }
  }
  return outcome satisfies never;
}

function doubt(step: LoopStep, state: LoopState): FrameOut {
  const [next] = state.calls as [ToolCall];
  return rest(step, { ...state, awaited: { kind: "in_doubt" } }, { ask: doubtOf(next) });
}

/** Records the call's result and moves on to the next call, or to the model with everything that arrived meanwhile. */
async function finishCall(
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
  return toNextCall(step, next, { ...(actions && { actions }) });
}

function withArgs(state: LoopState, args: JsonObject | null): LoopState {
  const [next, ...others] = state.calls as [ToolCall, ...ToolCall[]];
  return args === null ? state : { ...state, calls: [{ ...next, args }, ...others] };
}
