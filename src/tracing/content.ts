import { isObject, type JsonObject, type JsonValue } from "../domain/json.ts";

/** The longest attribute, in characters. */
const LONGEST = 32_000;
/** The longest text within one, so that a truncated attribute is still JSON. */
const LONGEST_PART = 8000;

type Part = JsonObject;
type Message = { role: string; parts: Part[] };

/** A value as an attribute. */
export const asText = (value: JsonValue | undefined): string =>
  shortened(typeof value === "string" ? value : JSON.stringify(value ?? null), LONGEST);

/** A model's input in the conventions' message format; only the newest messages if it is too long. */
export function inputMessages(input: JsonValue): string {
  const { messages } = isObject(input) ? input : {};
  return fitting(Array.isArray(messages) ? messages.filter(isObject).map(toMessage) : [userMessage(input)]);
}

export function instructions(input: JsonValue): string | undefined {
  const text = isObject(input) ? input["instructions"] : undefined;
  return typeof text === "string" ? JSON.stringify([textPart(text, LONGEST)]) : undefined;
}

export function outputMessages(output: JsonValue, finish_reason: string | undefined): string | undefined {
  if (output === null) return undefined;
  const reply = isObject(output) ? output : { text: output };
  const finish = finish_reason === undefined ? {} : { finish_reason };
  return JSON.stringify([{ ...toMessage({ ...reply, role: "assistant" }), ...finish }]);
}

/** The guidance that began a turn. */
export const guidanceMessages = (guidance: readonly JsonValue[]): string => fitting(guidance.map(userMessage));

function userMessage(item: JsonValue): Message {
  const text = isObject(item) && typeof item["text"] === "string" ? item["text"] : item;
  return { role: "user", parts: [textPart(text)] };
}

function toMessage({ role, text, tool_calls, call_id }: JsonObject): Message {
  if (role === "tool")
    return { role, parts: [{ type: "tool_call_response", id: call_id ?? null, response: partText(text) }] };
  const calls = Array.isArray(tool_calls) ? tool_calls.filter(isObject) : [];
  return {
    role: typeof role === "string" ? role : "user",
    parts: [
      ...(text === undefined || text === "" ? [] : [textPart(text)]),
      ...calls.map(({ call_id: id, name, args }) => ({
        type: "tool_call",
        id: id ?? null,
        name: name ?? null,
        arguments: JSON.stringify(args ?? {}).length > LONGEST_PART ? partText(args) : (args ?? {}),
      })),
    ],
  };
}

const textPart = (value: JsonValue | undefined, longest = LONGEST_PART): Part => ({
  type: "text",
  content: partText(value, longest),
});

const partText = (value: JsonValue | undefined, longest = LONGEST_PART): string =>
  shortened(typeof value === "string" ? value : JSON.stringify(value ?? null), longest);

const shortened = (text: string, longest: number): string =>
  text.length > longest ? `${text.slice(0, longest).toWellFormed()}…` : text;

/** As many of the last messages as fit. */
function fitting(messages: readonly Message[]): string {
  let room = LONGEST;
  const parts: string[] = [];
  for (const message of messages.toReversed()) {
    const text = JSON.stringify(message);
    room -= text.length;
    if (room < 0 && parts.length > 0) break;
    parts.unshift(text);
  }
  return `[${parts.join(",")}]`;
}
