import { z } from "zod";
import type { RoomEvent } from "../transport/room-event.ts";

export type Bot = { user_id: string; display_name: string | null };

/** What a person wrote, without the quote that their client put before it, and whether it addresses the bot. */
export type BodyText = { text: string; is_addressed: boolean; quoted: string | null };

export function bodyText({ content }: RoomEvent, bot: Bot): BodyText {
  const body = typeof content["body"] === "string" ? content["body"] : "";
  const isReply = repliedTo(content) !== null;
  const { quoted, text } = isReply ? withoutQuote(body) : { quoted: null, text: body };
  const named = withoutName(text.trim(), bot);
  return { text: named ?? text.trim(), is_addressed: named !== null || mentions(content, bot.user_id), quoted };
}

const replySchema = z.object({
  "m.in_reply_to": z.object({ event_id: z.string() }),
  is_falling_back: z.boolean().catch(false),
});
const mentionsSchema = z.object({ user_ids: z.array(z.unknown()) });

export function repliedTo(content: Record<string, unknown>): string | null {
  const reply = replySchema.safeParse(content["m.relates_to"]);
  // In a thread every message names one it replies to, for clients without thread support.
  return reply.success && !reply.data.is_falling_back ? reply.data["m.in_reply_to"].event_id : null;
}

/** Older clients quote the message in front of the reply, in lines that begin with `>`. */
function withoutQuote(body: string): { quoted: string | null; text: string } {
  const lines = body.split("\n");
  // The last line has no newline and is the person's own.
  const first = lines.findIndex((line, index) => !line.startsWith(">") || index === lines.length - 1);
  if (first <= 0) return { quoted: null, text: body };
  const quoted = lines
    .slice(0, first)
    .map((line) => line.replace(/^> ?/, ""))
    .join("\n")
    .replace(/^\* ?/, "")
    .replace(/^<@[^>]+> ?/, "")
    .trim();
  return { quoted, text: lines.slice(lines[first] === "" ? first + 1 : first).join("\n") };
}

/** The text after the bot's name, or null if it does not begin with the name. */
function withoutName(text: string, { user_id, display_name }: Bot): string | null {
  const localpart = user_id.slice(1).split(":")[0] ?? "";
  for (const name of [user_id, display_name, `@${localpart}`, localpart]) {
    if (name === null || name === "" || !text.toLowerCase().startsWith(name.toLowerCase())) continue;
    const rest = text.slice(name.length);
    // A plain word counts as the name only if punctuation shows that the bot is addressed.
    const isCalled = name.startsWith("@") ? /^[\s:,]|^$/.test(rest) : /^[:,]/.test(rest);
    if (isCalled) return rest.replace(/^[:,]?\s*/, "");
  }
  return null;
}

function mentions(content: Record<string, unknown>, user_id: string): boolean {
  const mentioned = mentionsSchema.safeParse(content["m.mentions"]);
  return mentioned.success && mentioned.data.user_ids.includes(user_id);
}
