import type { StepCall } from "../../../../../src/domain/step.ts";

export type Message = { role: string; text: string; rest: Record<string, unknown> | null };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The prompt of a model call as messages; null if it has another form. */
export function promptOf({ kind, input }: StepCall): { messages: Message[]; earlier: number } | null {
  if (kind !== "model" || !isObject(input) || !Array.isArray(input["messages"])) return null;
  const { instructions, messages, earlier_messages, tools } = input;
  const said = (messages as unknown[]).filter(isObject).map(messageOf);
  const system =
    typeof instructions === "string" ? [{ role: "instructions", text: instructions, rest: toolsOf(tools) }] : [];
  return { messages: [...system, ...said], earlier: typeof earlier_messages === "number" ? earlier_messages : 0 };
}

/** The reply of a model call; null if it has another form. */
export function replyOf({ kind, output }: StepCall): Message | null {
  if (kind !== "model") return null;
  if (typeof output === "string") return { role: "reply", text: output, rest: null };
  return isObject(output) && typeof output["text"] === "string" ? { ...messageOf(output), role: "reply" } : null;
}

function messageOf(message: Record<string, unknown>): Message {
  const { role, text, ...rest } = message;
  const hasMore = Object.values(rest).some((value) => value !== null && !(Array.isArray(value) && value.length === 0));
  return {
    role: typeof role === "string" ? role : "message",
    text: typeof text === "string" ? text : text === undefined ? "" : JSON.stringify(text),
    rest: hasMore ? rest : null,
  };
}

const toolsOf = (tools: unknown): Record<string, unknown> | null =>
  Array.isArray(tools) && tools.length > 0 ? { tools } : null;

/** Parses a string that holds JSON. */
export function parsed(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
