import { isObject, type JsonObject, type JsonValue } from "../../domain/json.ts";
import { guidanceText } from "../guidance.ts";
import type { ModelMessage } from "../llm/model-turn.ts";
import type { LoopState } from "./loop-state.ts";

type UserMessage = Extract<ModelMessage, { role: "user" }>;

/** What a step was told, taken apart: words for the model, answers to a question, and reports of sessions that it started. */
export type Heard = {
  /** A conversation that was held elsewhere before the words (`earlier: [{role, text}]` beside them). */
  earlier?: ModelMessage[];
  said: { message: UserMessage; answer: JsonValue | undefined }[];
  reports: LoopState["reports"];
};

const MOST_REPORTS = 200;

export function hear(guidance: readonly JsonValue[]): Heard {
  const heard: Required<Heard> = { earlier: [], said: [], reports: [] };
  for (const element of guidance) {
    heard.earlier.push(...earlierIn(element));
    const child = isObject(element) ? element["child"] : undefined;
    if (isObject(child)) heard.reports.push(reportOf(child));
    else heard.said.push({ message: toMessage(element), answer: isObject(element) ? element["answer"] : undefined });
  }
  return heard;
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

/** Who said it stays with it: a person, or another agent. */
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

/** The state with what was said and reported in it; words come after the results of calls that are under way. */
export function withHeard(state: LoopState, { earlier = [], said, reports }: Heard): LoopState {
  const messages = [...earlier, ...said.map(({ message }) => message)];
  const all = [...state.reports, ...reports].slice(-MOST_REPORTS);
  if (state.calls.length > 0) return { ...state, heard: [...state.heard, ...messages], reports: all };
  return { ...state, messages: [...state.messages, ...messages], reports: all };
}

/** Reports that the model has not seen yet become messages. */
export function withReportsTold(state: LoopState): LoopState {
  const untold = state.reports.filter(({ is_told }) => !is_told);
  if (untold.length === 0) return state;
  const messages: UserMessage[] = untold.map(({ session_id, text }) => ({ role: "user", name: session_id, text }));
  const reports = state.reports.map((report) => ({ ...report, is_told: true }));
  return { ...state, messages: [...state.messages, ...messages], reports };
}
