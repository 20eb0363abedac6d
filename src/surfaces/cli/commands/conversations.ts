import { userInfo } from "node:os";
import { z } from "zod";
import { conversationSchema, type Message, messageSchema } from "../../../domain/conversation.ts";
import { idSchema } from "../../../domain/ids.ts";
import type { ApiClient } from "../client.ts";
import { age, coloured, oneLine, printable, table } from "../output.ts";

export type ConversationsOptions = { limit: string; json?: boolean };
export type SayOptions = { user?: string; json?: boolean };

const PAGE = 500;
const listSchema = z.object({ conversations: z.array(conversationSchema) });
const messagesSchema = z.object({ messages: z.array(messageSchema) });
const saidSchema = z.object({ message: messageSchema, action_ids: z.array(idSchema) });

/** Lists conversations, newest first, or prints the messages of one. */
export async function conversations(
  client: ApiClient,
  conversation_id: string | undefined,
  { limit, json }: ConversationsOptions,
): Promise<void> {
  if (conversation_id !== undefined) return transcript(client, conversation_id, json ?? false);
  const answer = await client.get(listSchema, "/api/conversations", { limit });
  if (json) return console.log(JSON.stringify(answer));
  if (answer.conversations.length === 0) return console.log("no conversations yet");
  const rows = answer.conversations.map(({ conversation_id: id, title, status, created_at, tags }) => [
    id,
    status,
    age(created_at),
    oneLine(title ?? "", 60),
    tags.map(printable).join(" "),
  ]);
  console.log(table(["CONVERSATION", "STATUS", "AGE", "TITLE", "TAGS"], rows));
}

async function transcript(client: ApiClient, conversation_id: string, json: boolean): Promise<void> {
  const path = `/api/conversations/${encodeURIComponent(conversation_id)}/messages`;
  for (let offset = 0; ; offset += PAGE) {
    const { messages } = await client.get(messagesSchema, path, { limit: PAGE, offset });
    for (const message of messages) console.log(json ? JSON.stringify(message) : line(message));
    if (messages.length < PAGE) return;
  }
}

function line({ user_id, agent_id, sender_type, text, data }: Message): string {
  const who = user_id ?? agent_id ?? sender_type;
  return `${coloured(user_id === null ? "green" : "cyan", printable(who))}  ${printable(text ?? JSON.stringify(data))}`;
}

/** Posts a message. Words are joined, so that a sentence needs no quotes. */
export async function say(
  client: ApiClient,
  conversation_id: string,
  words: string[],
  { user, json }: SayOptions,
): Promise<void> {
  const message = { user_id: user ?? userInfo().username, text: words.join(" ") };
  const answer = await client.submit(saidSchema, (server) => server.say(conversation_id, message));
  if (json) return console.log(JSON.stringify(answer));
  const reached = answer.action_ids.length;
  console.log(
    reached === 0
      ? "sent; no agent is in this conversation"
      : `sent to ${reached} ${reached === 1 ? "agent" : "agents"}`,
  );
}
