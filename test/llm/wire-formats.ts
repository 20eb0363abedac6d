import { isObject, type JsonObject, type JsonValue } from "../../src/domain/json.ts";

/** `input` is everything that was read; `cached` is the part of it that the provider had cached. */
export type Usage = { input: number; output: number; cached?: number };
export type FinishReason = "stop" | "length" | "refusal";
/** `args` is what the model wrote, JSON or not. */
export type WrittenCall = { id: string; name: string; args: string };
/** A reply with everything it may contain. */
export type WrittenTurn = {
  thoughts?: string;
  text?: string;
  calls?: WrittenCall[];
  usage?: Usage | null;
  finish?: FinishReason;
};
export type ChatMessage = { role: string; text: string };

/** What a provider sends for one reply: complete, or piece by piece as server-sent events. */
export type WireFormat = {
  path: string;
  keyOf(headers: Record<string, unknown>): string | null;
  messagesOf(body: JsonObject): ChatMessage[];
  whole(text: string, usage: Usage | null, finish: FinishReason): JsonValue;
  begin(usage: Usage | null): string;
  piece(text: string): string;
  end(usage: Usage | null, finish: FinishReason): string;
  /** A complete reply with reasoning and tool calls, as the events of a stream. */
  turn(turn: WrittenTurn): string;
  /** An error reported within the stream. */
  error: string;
  /** The tools offered to the model, and their results by call id. */
  toolsOf(body: JsonObject): { name: string; schema: JsonValue }[];
  resultsOf(body: JsonObject): { id: string; text: string }[];
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
    ...(usage.cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: usage.cached } }),
  };
const openAiChunk = (choices: JsonValue, more: JsonObject = {}): string =>
  event({ id: "reply", object: "chat.completion.chunk", created: 1_700_000_000, model: "test", choices, ...more });

const openAiFinish = (finish: FinishReason, hasCalls = false): string =>
  finish === "refusal" ? "content_filter" : finish === "stop" && hasCalls ? "tool_calls" : finish;
const openAiDelta = (delta: JsonObject): string => openAiChunk([{ index: 0, delta, finish_reason: null }]);
const listOf = (value: JsonValue | undefined): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);
const halves = (text: string): [string, string] => [text.slice(0, text.length / 2), text.slice(text.length / 2)];

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
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: openAiFinish(finish) }],
    ...(usage ? { usage: openAiUsage(usage) } : {}),
  }),
  begin: () => openAiChunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
  piece: (text) => openAiChunk([{ index: 0, delta: { content: text }, finish_reason: null }]),
  end: (usage, finish) =>
    `${openAiChunk([{ index: 0, delta: {}, finish_reason: openAiFinish(finish) }])}${
      usage ? openAiChunk([], { usage: openAiUsage(usage) }) : ""
    }data: [DONE]\n\n`,
  turn: ({ thoughts, text, calls = [], usage = null, finish = "stop" }) =>
    [
      openai.begin(null),
      ...(thoughts === undefined ? [] : [openAiDelta({ reasoning_content: thoughts })]),
      ...(text === undefined ? [] : [openai.piece(text)]),
      ...calls.flatMap(({ id, name, args }, index) => {
        const [first, second] = halves(args);
        return [
          openAiDelta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: first } }] }),
          openAiDelta({ tool_calls: [{ index, function: { arguments: second } }] }),
        ];
      }),
      openAiChunk([{ index: 0, delta: {}, finish_reason: openAiFinish(finish, calls.length > 0) }]),
      usage ? openAiChunk([], { usage: openAiUsage(usage) }) : "",
      "data: [DONE]\n\n",
    ].join(""),
  error: 'data: {"error": {"message": "The server had an error", "type": "server_error", "code": 500}}\n\n',
  toolsOf: (body) =>
    listOf(body["tools"]).map(({ function: tool }) =>
      isObject(tool) ? { name: textOf(tool["name"]), schema: tool["parameters"] ?? null } : { name: "", schema: null },
    ),
  resultsOf: (body) =>
    listOf(body["messages"])
      .filter(({ role }) => role === "tool")
      .map((message) => ({ id: textOf(message["tool_call_id"]), text: textOf(message["content"]) })),
};

const stopReason = (finish: FinishReason): string =>
  finish === "stop" ? "end_turn" : finish === "refusal" ? "refusal" : "max_tokens";
/** The provider's `input_tokens` exclude cached tokens. */
const anthropicInput = (usage: Usage | null): JsonObject => ({
  input_tokens: (usage?.input ?? 0) - (usage?.cached ?? 0),
  ...(usage?.cached === undefined ? {} : { cache_read_input_tokens: usage.cached, cache_creation_input_tokens: 0 }),
});
const anthropicBlock = (index: number, content_block: JsonObject, deltas: JsonObject[]): string =>
  [
    event({ type: "content_block_start", index, content_block }, "content_block_start"),
    ...deltas.map((delta) => event({ type: "content_block_delta", index, delta }, "content_block_delta")),
    event({ type: "content_block_stop", index }, "content_block_stop"),
  ].join("");
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
  // The provider always reports the input and one output token here; the real output count follows at the end.
  begin: (usage) =>
    event(
      {
        type: "message_start",
        message: anthropicMessage([], { ...anthropicInput(usage), output_tokens: 1 }, null),
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
        usage: { output_tokens: usage?.output ?? 0 },
      },
      "message_delta",
    ) +
    event({ type: "message_stop" }, "message_stop"),
  turn: ({ thoughts, text, calls = [], usage = null, finish = "stop" }) => {
    const blocks: [JsonObject, JsonObject[]][] = [
      ...(thoughts === undefined
        ? []
        : ([
            [
              { type: "thinking", thinking: "" },
              [
                { type: "thinking_delta", thinking: thoughts },
                { type: "signature_delta", signature: "signed" },
              ],
            ],
          ] as [JsonObject, JsonObject[]][])),
      ...(text === undefined
        ? []
        : ([[{ type: "text", text: "" }, [{ type: "text_delta", text }]]] as [JsonObject, JsonObject[]][])),
      ...calls.map(({ id, name, args }): [JsonObject, JsonObject[]] => [
        { type: "tool_use", id, name, input: {} },
        halves(args).map((partial_json) => ({ type: "input_json_delta", partial_json })),
      ]),
    ];
    const stop_reason = calls.length > 0 && finish === "stop" ? "tool_use" : stopReason(finish);
    return [
      event(
        {
          type: "message_start",
          message: anthropicMessage([], { ...anthropicInput(usage), output_tokens: 1 }, null),
        },
        "message_start",
      ),
      ...blocks.map(([block, deltas], index) => anthropicBlock(index, block, deltas)),
      event(
        {
          type: "message_delta",
          delta: { stop_reason, stop_sequence: null },
          usage: { output_tokens: usage?.output ?? 0 },
        },
        "message_delta",
      ),
      event({ type: "message_stop" }, "message_stop"),
    ].join("");
  },
  error: 'event: error\ndata: {"type": "error", "error": {"type": "api_error", "message": "Internal"}}\n\n',
  toolsOf: (body) =>
    listOf(body["tools"]).map((tool) => ({ name: textOf(tool["name"]), schema: tool["input_schema"] ?? null })),
  resultsOf: (body) =>
    listOf(body["messages"]).flatMap(({ content }) =>
      listOf(content)
        .filter(({ type }) => type === "tool_result")
        .map((part) => ({ id: textOf(part["tool_use_id"]), text: textOf(part["content"]) })),
    ),
};

const responsesUsage = (usage: Usage | null) =>
  usage && {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached ?? 0 },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  };
const responsesHead = { id: "resp_1", created_at: 1_700_000_000, model: "test" };
const responsesEvent = (type: string, data: JsonObject): string => event({ type, sequence_number: 0, ...data }, type);
const responsesItem = (output_index: number, added: JsonObject, done: JsonObject, between: string): string =>
  responsesEvent("response.output_item.added", { output_index, item: added }) +
  between +
  responsesEvent("response.output_item.done", { output_index, item: done });
const responsesText = (index: number, text: string): string =>
  responsesItem(
    index,
    { type: "message", id: `msg_${index}`, role: "assistant", status: "in_progress", content: [] },
    {
      type: "message",
      id: `msg_${index}`,
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    },
    text === "" ? "" : responsesDelta(index, text),
  );
const responsesDelta = (index: number, delta: string): string =>
  responsesEvent("response.output_text.delta", {
    item_id: `msg_${index}`,
    output_index: index,
    content_index: 0,
    delta,
    logprobs: [],
  });
const responsesEnd = (usage: Usage | null, finish: FinishReason): string => {
  const reason = finish === "length" ? "max_output_tokens" : finish === "refusal" ? "content_filter" : null;
  const type = reason === null ? "response.completed" : "response.incomplete";
  const incomplete_details = reason === null ? null : { reason };
  return responsesEvent(type, {
    response: {
      ...responsesHead,
      incomplete_details,
      ...(usage ? { usage: responsesUsage(usage) } : {}),
    },
  });
};

const responses: WireFormat = {
  path: "/responses",
  keyOf: (headers) => openai.keyOf(headers),
  messagesOf: (body) => [
    ...(typeof body["instructions"] === "string" ? [{ role: "system", text: body["instructions"] }] : []),
    ...messages(listOf(body["input"]).filter(({ role }) => role !== undefined)),
  ],
  whole: () => null,
  begin: () =>
    responsesEvent("response.created", { response: responsesHead }) +
    responsesEvent("response.output_item.added", {
      output_index: 0,
      item: { type: "message", id: "msg_0", role: "assistant", status: "in_progress", content: [] },
    }),
  piece: (text) => responsesDelta(0, text),
  end: (usage, finish) =>
    responsesEvent("response.output_item.done", {
      output_index: 0,
      item: { type: "message", id: "msg_0", role: "assistant", status: "completed", content: [] },
    }) + responsesEnd(usage, finish),
  turn: ({ thoughts, text, calls = [], usage = null, finish = "stop" }) => {
    const items: ((index: number) => string)[] = [];
    if (thoughts !== undefined)
      items.push((index) =>
        responsesItem(
          index,
          { type: "reasoning", id: `rs_${index}`, summary: [], encrypted_content: "sealed" },
          { type: "reasoning", id: `rs_${index}`, summary: [], encrypted_content: "sealed" },
          "",
        ),
      );
    if (text !== undefined) items.push((index) => responsesText(index, text));
    for (const { id: call_id, name, args } of calls)
      items.push((index) => {
        const item = { type: "function_call", id: `fc_${index}`, call_id, name };
        const deltas = halves(args).map((delta) =>
          responsesEvent("response.function_call_arguments.delta", { item_id: item.id, output_index: index, delta }),
        );
        return responsesItem(
          index,
          { ...item, arguments: "", status: "in_progress" },
          { ...item, arguments: args, status: "completed" },
          deltas.join(""),
        );
      });
    return [
      responsesEvent("response.created", { response: responsesHead }),
      ...items.map((item, index) => item(index)),
      responsesEnd(usage, finish),
    ].join("");
  },
  error: responsesEvent("error", { code: "server_error", message: "The server had an error", param: null }),
  toolsOf: (body) =>
    listOf(body["tools"]).map((tool) => ({ name: textOf(tool["name"]), schema: tool["parameters"] ?? null })),
  resultsOf: (body) =>
    listOf(body["input"])
      .filter(({ type }) => type === "function_call_output")
      .map((item) => ({ id: textOf(item["call_id"]), text: textOf(item["output"]) })),
};

const googleChunk = (parts: JsonObject[], more: JsonObject = {}, finishReason?: string): string =>
  event({
    candidates: [
      { content: { role: "model", parts }, index: 0, ...(finishReason === undefined ? {} : { finishReason }) },
    ],
    ...more,
  });
const googleUsage = (usage: Usage | null): JsonObject =>
  usage
    ? {
        usageMetadata: {
          promptTokenCount: usage.input,
          candidatesTokenCount: usage.output,
          totalTokenCount: usage.input + usage.output,
          ...(usage.cached === undefined ? {} : { cachedContentTokenCount: usage.cached }),
        },
      }
    : {};
const googleFinish = (finish: FinishReason): string =>
  finish === "stop" ? "STOP" : finish === "refusal" ? "SAFETY" : "MAX_TOKENS";
/** Invalid JSON cannot be sent to Google: its arguments are an object on the wire. */
const googleArgs = (args: string): JsonValue => {
  try {
    return JSON.parse(args) as JsonValue;
  } catch {
    return args;
  }
};

const google: WireFormat = {
  path: ":streamGenerateContent?alt=sse",
  keyOf: (headers) => (typeof headers["x-goog-api-key"] === "string" ? headers["x-goog-api-key"] : null),
  messagesOf: (body) => [
    ...(isObject(body["systemInstruction"])
      ? [{ role: "system", text: textOf(body["systemInstruction"]["parts"]) }]
      : []),
    ...listOf(body["contents"]).map(({ role, parts }) => ({ role: textOf(role), text: textOf(parts) })),
  ],
  whole: () => null,
  begin: () => "",
  piece: (text) => googleChunk([{ text }]),
  end: (usage, finish) => googleChunk([], googleUsage(usage), googleFinish(finish)),
  turn: ({ thoughts, text, calls = [], usage = null, finish = "stop" }) =>
    [
      ...(thoughts === undefined ? [] : [googleChunk([{ text: thoughts, thought: true }])]),
      ...(text === undefined ? [] : [googleChunk([{ text }])]),
      ...calls.map(({ id, name, args }) =>
        googleChunk([
          {
            functionCall: { id, name, args: googleArgs(args) },
            ...(thoughts === undefined ? {} : { thoughtSignature: "signed" }),
          },
        ]),
      ),
      googleChunk([], googleUsage(usage), googleFinish(finish)),
    ].join(""),
  error: event({ error: { code: 500, message: "Internal", status: "INTERNAL" } }),
  toolsOf: (body) =>
    listOf(body["tools"])
      .flatMap(({ functionDeclarations }) => listOf(functionDeclarations))
      .map((tool) => ({
        name: textOf(tool["name"]),
        schema: tool["parametersJsonSchema"] ?? tool["parameters"] ?? null,
      })),
  resultsOf: (body) =>
    listOf(body["contents"])
      .flatMap(({ parts }) => listOf(parts))
      .flatMap(({ functionResponse }) =>
        isObject(functionResponse)
          ? [{ id: textOf(functionResponse["id"]), text: JSON.stringify(functionResponse["response"]) }]
          : [],
      ),
};

export const WIRE_FORMATS = { openai, anthropic, responses, google } as const;
export type WireFormatName = keyof typeof WIRE_FORMATS;
