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

/** Bytes of an event's content that a homeserver takes for certain, also encrypted, which makes four bytes of three: 65,536 is the limit of the whole event with its envelope. */
export const LARGEST_CONTENT = 46_000;

export type ContentOptions = { is_notice: boolean; reply_to?: string | undefined };

/** Without formatting where that would make it too large to be sent, even as an edit, which says everything twice. */
export function contentOf(markdown: string, { is_notice, reply_to }: ContentOptions): MessageContent {
  // Half of an emoji at the border of a chunk is not text, and the homeserver fails on it.
  const body = markdown.toWellFormed();
  const html = toHtml(body);
  const plain: MessageContent = {
    msgtype: is_notice ? "m.notice" : "m.text",
    body,
    // Nobody is called by what is quoted.
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

/** The content that replaces an earlier message's. */
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
