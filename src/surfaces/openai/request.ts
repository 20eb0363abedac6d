import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { OpenAiError } from "./openai-error.ts";

type Turn = { role: "user" | "assistant"; text: string };

/** The common form of both kinds of requests. */
export type ParsedRequest = {
  model: string;
  /** The texts of system and developer messages. */
  instructions: string | undefined;
  /** Earlier messages, oldest first. */
  earlier: Turn[];
  text: string;
  user: string | undefined;
  /** The client's id of the conversation. */
  key: string | undefined;
};

const partSchema = z.looseObject({ type: z.string(), text: z.string().optional() });
const contentSchema = z.union([z.string(), z.array(partSchema), z.null()]).optional();
const messageSchema = z.looseObject({ role: z.string(), content: contentSchema });
type Message = z.infer<typeof messageSchema>;

const common = {
  model: z.string().min(1).max(200),
  stream: z.boolean().nullish(),
  user: z.string().min(1).max(500).nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
};

export const chatRequestSchema = z.looseObject({
  ...common,
  messages: z.array(messageSchema).min(1),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
});
export type ChatRequest = z.infer<typeof chatRequestSchema>;

export const responseRequestSchema = z.looseObject({
  ...common,
  input: z.union([
    z.string(),
    z.array(z.looseObject({ type: z.string().optional(), role: z.string().optional(), content: contentSchema })),
  ]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().min(1).nullish(),
  background: z.boolean().nullish(),
  conversation: z.union([z.string(), z.looseObject({ id: z.string() })]).nullish(),
});
export type ResponseRequest = z.infer<typeof responseRequestSchema>;

export function parseChatRequest(body: ChatRequest, headers: IncomingHttpHeaders): ParsedRequest {
  return parseMessages(body, body.messages, keyOf(body, headers));
}

export function parseResponseRequest(body: ResponseRequest, headers: IncomingHttpHeaders): ParsedRequest {
  const { input, instructions, conversation } = body;
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const messages = items.flatMap(({ role, content }): Message[] => (role === undefined ? [] : [{ role, content }]));
  const key = keyOf(body, headers) ?? (typeof conversation === "string" ? conversation : conversation?.id);
  const system: Message[] = instructions ? [{ role: "system", content: instructions }] : [];
  return parseMessages(body, [...system, ...messages], key);
}

/** `user` and `metadata.conversation_id` form the key together: a client's conversation ids are unique per user. */
function keyOf(
  { user, metadata }: Pick<ChatRequest, "user" | "metadata">,
  headers: IncomingHttpHeaders,
): string | undefined {
  const named = headers["x-openwebui-chat-id"] ?? headers["x-conversation-id"];
  const header = Array.isArray(named) ? named[0] : named;
  if (header) return header;
  const conversation_id = metadata?.["conversation_id"];
  return user && conversation_id ? `${user}\n${conversation_id}` : undefined;
}

function parseMessages(
  { model, user }: Pick<ChatRequest, "model" | "user">,
  messages: Message[],
  key: string | undefined,
): ParsedRequest {
  const texts = messages.map((message) => ({ role: message.role, text: textOf(message) }));
  const isSystem = (role: string) => role === "system" || role === "developer";
  const instructions = texts
    .filter(({ role }) => isSystem(role))
    .map(({ text }) => text)
    .join("\n\n");
  const turns = texts.flatMap(({ role, text }): Turn[] =>
    isSystem(role) || text === "" ? [] : [{ role: role === "assistant" ? "assistant" : "user", text }],
  );
  // Everything the person wrote since the last answer, in one or more messages.
  const start = turns.findLastIndex(({ role }) => role === "assistant") + 1;
  const text = turns
    .slice(start)
    .map((turn) => turn.text)
    .join("\n\n");
  if (text === "") throw new OpenAiError(400, "the last message must be a user's, with text", null, "messages");
  return {
    model,
    instructions: instructions || undefined,
    earlier: turns.slice(0, start),
    text,
    user: user ?? undefined,
    key,
  };
}

const TEXTS = new Set(["text", "input_text", "output_text"]);

function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  return (content ?? [])
    .map(({ type, text }) => {
      if (!TEXTS.has(type) || text === undefined)
        throw new OpenAiError(
          400,
          `content of type ${type} is not supported: agents take text`,
          "unsupported_content",
          "messages",
        );
      return text;
    })
    .join("");
}

/** Prompts with which chat front-ends generate titles, tags and the like: not part of a conversation. */
const TASK_PROMPTS = [
  // Open WebUI: titles, tags, follow-up questions, search queries, completions.
  /^### Task:[\s\S]*(?:<chat_history>|### Chat History|<type>|### Output)/i,
  // LibreChat: titles, "5-word-or-less" or "in 5 Words or Less".
  /^(?=[\s\S]*\b5[- ]words?[- ]or[- ]less\b)[\s\S]{0,100}\btitle\b[\s\S]{0,200}\bconversation\b/i,
];

export const isTaskPrompt = ({ text }: ParsedRequest): boolean =>
  TASK_PROMPTS.some((pattern) => pattern.test(text.trimStart()));
