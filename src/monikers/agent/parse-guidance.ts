import { isObject, type JsonObject, type JsonValue } from "../../domain/json.ts";
import { guidanceText } from "../guidance.ts";
import type { ModelMessage } from "../llm/model-turn.ts";
import type { LoopState } from "./loop-state.ts";

type UserMessage = Extract<ModelMessage, { role: "user" }>;

export type Input = { message: UserMessage; answer: JsonValue | undefined };

/** A step's guidance, parsed: inputs for the model, which may answer a question, and reports of sessions that it started. */
export type ParsedGuidance = {
  /** A conversation held elsewhere before these inputs (`earlier: [{role, text}]` beside them). */
  earlier?: ModelMessage[];
  inputs: Input[];
  reports: LoopState["reports"];
};

const MOST_REPORTS = 200;

export function parseGuidance(guidance: readonly JsonValue[]): ParsedGuidance {
  const parsed: Required<ParsedGuidance> = { earlier: [], inputs: [], reports: [] };
  for (const element of guidance) {
    parsed.earlier.push(...earlierIn(element));
    const child = isObject(element) ? element["child"] : undefined;
    if (isObject(child)) parsed.reports.push(reportOf(child));
    else parsed.inputs.push({ message: toMessage(element), answer: isObject(element) ? element["answer"] : undefined });
  }
  return parsed;
}

function earlierIn(element: JsonValue): ModelMessage[] {
  const earlier = isObject(element) ? element["earlier"] : undefined;
  if (!Array.isArray(earlier)) return [];
  return earlier.flatMap((turn): ModelMessage[] => {
    if (!isObject(turn) || typeof turn["text"] !== "string") return [];
    const { role, text } = turn;
    return role === "assistant" ? [{ role, text, tool_calls: [] }] : [{ role: "user", text }];
  });
}

/** Keeps the sender: a person or another agent. */
function toMessage(element: JsonValue): UserMessage {
  const text = guidanceText(element) ?? textOf(isObject(element) && "answer" in element ? element["answer"] : element);
  const { user_id, agent_id } = isObject(element) ? element : {};
  const name = [user_id, agent_id].find((id) => typeof id === "string" && id !== "");
  return { role: "user", ...(typeof name === "string" ? { name } : {}), text };
}

export const textOf = (value: JsonValue | undefined): string =>
  typeof value === "string" ? value : JSON.stringify(value ?? null);

function reportOf(child: JsonObject): LoopState["reports"][number] {
  const { session_id, agent_id, status, stop_reason, result, error } = child;
  const end = [`Session ${textOf(session_id)} of agent ${textOf(agent_id)} ended as ${textOf(status)}`];
  if (stop_reason) end.push(`because of ${textOf(stop_reason)}`);
  if (error) end.push(`with the error ${textOf(error)}`);
  const text = `${end.join(" ")}.${result === null || result === undefined ? "" : ` Its result:\n${textOf(result)}`}`;
  return { session_id: textOf(session_id), text, is_told: false };
}

/** Adds guidance to the state; inputs come after the results of calls in progress. */
export function withGuidance(state: LoopState, { earlier = [], inputs, reports }: ParsedGuidance): LoopState {
  const messages = [...earlier, ...inputs.map(({ message }) => message)];
  const all = [...state.reports, ...reports].slice(-MOST_REPORTS);
  if (state.calls.length > 0) return { ...state, heard: [...state.heard, ...messages], reports: all };
  return { ...state, messages: [...state.messages, ...messages], reports: all };
}

/** Turns reports that the model has not seen yet into messages. */
export function withUnreadReports(state: LoopState): LoopState {
  const unread = state.reports.filter(({ is_told }) => !is_told);
  if (unread.length === 0) return state;
  const messages: UserMessage[] = unread.map(({ session_id, text }) => ({ role: "user", name: session_id, text }));
  const reports = state.reports.map((report) => ({ ...report, is_told: true }));
  return { ...state, messages: [...state.messages, ...messages], reports };
}
