import { toHtml } from "./markdown.ts";

/** The content of an `m.room.message`. */
export type MessageContent = {
  msgtype: "m.text" | "m.notice";
  body: string;
  format?: "org.matrix.custom.html";
  formatted_body?: string;
  "m.new_content"?: MessageContent;
  "m.relates_to"?: Record<string, unknown>;
  "m.mentions"?: { user_ids?: string[] };
};

/** Bytes of content that a homeserver is sure to accept, encrypted too (base64 turns three bytes into four): the limit of the whole event is 65,536. */
export const LARGEST_CONTENT = 46_000;

export type ContentOptions = { is_notice: boolean; reply_to?: string | undefined };

/** Leaves the formatting out if it would make the event too large, as an edit too, which contains everything twice. */
export function contentOf(markdown: string, { is_notice, reply_to }: ContentOptions): MessageContent {
  // Half of an emoji at the end of a chunk is not valid text, and the homeserver fails on it.
  const body = markdown.toWellFormed();
  const html = toHtml(body);
  const plain: MessageContent = {
    msgtype: is_notice ? "m.notice" : "m.text",
    body,
    // Quoted names mention nobody.
    "m.mentions": {},
    ...(reply_to === undefined ? {} : { "m.relates_to": { "m.in_reply_to": { event_id: reply_to } } }),
  };
  if (html === null) return plain;
  const formatted: MessageContent = {
    ...plain,
    format: "org.matrix.custom.html",
    formatted_body: html.toWellFormed(),
  };
  return sizeOf(asEdit(formatted, "$".padEnd(50))) <= LARGEST_CONTENT ? formatted : plain;
}

/** The content as part of a thread. Without a reply it names the thread's first event, for clients without thread support. */
export function inThread(content: MessageContent, thread: string): MessageContent {
  const { "m.in_reply_to": answered } = content["m.relates_to"] ?? {};
  const reply = { is_falling_back: answered === undefined, "m.in_reply_to": answered ?? { event_id: thread } };
  return { ...content, "m.relates_to": { rel_type: "m.thread", event_id: thread, ...reply } };
}

/** The content as an edit of an earlier message. */
export function asEdit(content: MessageContent, event_id: string): MessageContent {
  const { "m.relates_to": _, ...replacement } = content;
  return {
    ...replacement,
    body: `* ${content.body}`,
    ...(content.formatted_body === undefined ? {} : { formatted_body: `* ${content.formatted_body}` }),
    "m.new_content": replacement,
    "m.relates_to": { rel_type: "m.replace", event_id },
  };
}

export const sizeOf = (content: MessageContent): number => Buffer.byteLength(JSON.stringify(content));
