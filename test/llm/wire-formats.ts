import { isObject, type JsonObject, type JsonValue } from "../../src/domain/json.ts";

export type Usage = { input: number; output: number };
export type FinishReason = "stop" | "length";
export type ChatMessage = { role: string; text: string };

/** What a provider sends for one reply: whole, or piece by piece as server-sent events. */
export type WireFormat = {
  path: string;
  keyOf(headers: Record<string, unknown>): string | null;
  messagesOf(body: JsonObject): ChatMessage[];
  whole(text: string, usage: Usage | null, finish: FinishReason): JsonValue;
  begin(usage: Usage | null): string;
  piece(text: string): string;
  end(usage: Usage | null, finish: FinishReason): string;
};

const event = (data: JsonValue, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

const textOf = (content: JsonValue | undefined): string => {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((part) => (isObject(part) ? textOf(part["text"]) : "")).join("");
  return "";
};

const messages = (list: JsonValue | undefined): ChatMessage[] =>
  (Array.isArray(list) ? list : []).map((message) =>
    isObject(message)
      ? { role: textOf(message["role"]), text: textOf(message["content"]) }
      : { role: "", text: JSON.stringify(message) },
  );

const openAiUsage = (usage: Usage | null) =>
  usage && {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
  };
const openAiChunk = (choices: JsonValue, more: JsonObject = {}): string =>
  event({ id: "reply", object: "chat.completion.chunk", created: 1_700_000_000, model: "test", choices, ...more });

const openai: WireFormat = {
  path: "/chat/completions",
  keyOf: ({ authorization }) =>
    typeof authorization === "string" ? authorization.replace(/^Bearer ?/, "") || null : null,
  messagesOf: (body) => messages(body["messages"]),
  whole: (text, usage, finish) => ({
    id: "reply",
    object: "chat.completion",
    created: 1_700_000_000,
    model: "test",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: finish }],
    ...(usage ? { usage: openAiUsage(usage) } : {}),
  }),
  begin: () => openAiChunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
  piece: (text) => openAiChunk([{ index: 0, delta: { content: text }, finish_reason: null }]),
  end: (usage, finish) =>
    `${openAiChunk([{ index: 0, delta: {}, finish_reason: finish }])}${
      usage ? openAiChunk([], { usage: openAiUsage(usage) }) : ""
    }data: [DONE]\n\n`,
};

const stopReason = (finish: FinishReason): string => (finish === "stop" ? "end_turn" : "max_tokens");
const anthropicMessage = (content: JsonValue, usage: JsonObject, stop_reason: string | null): JsonObject => ({
  id: "reply",
  type: "message",
  role: "assistant",
  model: "test",
  content,
  stop_reason,
  stop_sequence: null,
  usage,
});

const anthropic: WireFormat = {
  path: "/v1/messages",
  keyOf: (headers) => (typeof headers["x-api-key"] === "string" ? headers["x-api-key"] : null),
  messagesOf: (body) => [
    ...(body["system"] === undefined ? [] : [{ role: "system", text: textOf(body["system"]) }]),
    ...messages(body["messages"]),
  ],
  whole: (text, usage, finish) =>
    anthropicMessage(
      [{ type: "text", text }],
      { input_tokens: usage?.input ?? 0, output_tokens: usage?.output ?? 0 },
      stopReason(finish),
    ),
  // The provider always names the input and one token of output here; the true output comes at the end.
  begin: (usage) =>
    event(
      {
        type: "message_start",
        message: anthropicMessage([], { input_tokens: usage?.input ?? 0, output_tokens: 1 }, null),
      },
      "message_start",
    ) +
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }, "content_block_start"),
  piece: (text) =>
    event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }, "content_block_delta"),
  end: (usage, finish) =>
    event({ type: "content_block_stop", index: 0 }, "content_block_stop") +
    event(
      {
        type: "message_delta",
        delta: { stop_reason: stopReason(finish), stop_sequence: null },
        ...(usage ? { usage: { output_tokens: usage.output } } : {}),
      },
      "message_delta",
    ) +
    event({ type: "message_stop" }, "message_stop"),
};

export const WIRE_FORMATS = { openai, anthropic } as const;
export type WireFormatName = keyof typeof WIRE_FORMATS;
