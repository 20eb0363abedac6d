import type { MessageContent } from "./content.ts";

/** Longer reasons belong in the log. */
const LONGEST_REASON = 300;

/** An error in a few words. */
export const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, LONGEST_REASON).toWellFormed();

/** A notice without formatting: it cannot fail, so it can report what did. */
export const plainNotice = (text: string, reply_to?: string): MessageContent => ({
  msgtype: "m.notice",
  body: text.toWellFormed(),
  "m.mentions": {},
  ...(reply_to === undefined ? {} : { "m.relates_to": { "m.in_reply_to": { event_id: reply_to } } }),
});
