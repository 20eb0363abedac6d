import { z } from "zod";
import { type Bot, bodyText, repliedTo } from "../text/body-text.ts";
import type { RoomEvent } from "../transport/room-event.ts";
import type { Incoming, IncomingMessage, Origin } from "./incoming.ts";

const COMMAND = /^!(\p{L}[\p{L}\p{N}_-]*)(?:\s+([\s\S]*))?$/u;
const YES = new Set(["✅", "👍", "✔", "☑"]);
const NO = new Set(["❌", "👎", "✖"]);
const KEYCAP = /^([1-9])\uFE0F?\u20E3$/u;
const MEDIA = new Set(["m.image", "m.file", "m.audio", "m.video", "m.location"]);

/** Converts a room event for the handlers; null for what does not concern them: the bot's own messages, notices, the rest. */
export function fromRoomEvent(event: RoomEvent, bot: Bot): Incoming | null {
  if (event.sender === bot.user_id || event.state_key !== undefined) return null;
  const { event_id, room_id, sender: user_id, origin_server_ts: sent_at } = event;
  const origin: Origin = { event_id, room_id, user_id, sent_at, thread: threadOf(event.content), chat: null };
  if (event.type === "m.reaction") return fromReaction(event, origin);
  return event.type === "m.room.message" ? fromMessage(event, origin, bot) : null;
}

function fromMessage(event: RoomEvent, origin: Origin, bot: Bot): Incoming | null {
  const { content } = event;
  const relation = relationOf(content);
  if (relation.rel_type === "m.replace") {
    const renewed = z.record(z.string(), z.unknown()).safeParse(content["m.new_content"]);
    if (!renewed.success || relation.event_id === null) return null;
    const { text } = bodyText({ ...event, content: renewed.data }, bot);
    return { ...origin, kind: "callback", action: "edit", target: relation.event_id, text };
  }
  const isText = content["msgtype"] === "m.text" || content["msgtype"] === "m.emote";
  if (!isText && !MEDIA.has(String(content["msgtype"]))) return null;
  const { text, is_addressed, quoted } = bodyText(event, bot);
  const message: IncomingMessage = {
    ...origin,
    kind: "message",
    text,
    is_addressed,
    quoted,
    replied_to: repliedTo(content),
    is_text: isText,
  };
  const command = isText ? COMMAND.exec(text) : null;
  if (!command) return message;
  return {
    ...message,
    kind: "command",
    name: (command[1] ?? "").toLowerCase(),
    argument: (command[2] ?? "").trim(),
  };
}

function fromReaction({ content }: RoomEvent, origin: Origin): Incoming | null {
  const { event_id, key } = relationOf(content);
  if (event_id === null) return null;
  // Clients append a variation selector or a skin tone.
  const sign = String.fromCodePoint(key.codePointAt(0) ?? 0);
  const number = KEYCAP.exec(key)?.[1];
  const answer = YES.has(sign) ? "yes" : NO.has(sign) ? "no" : number === undefined ? null : Number(number);
  return answer === null ? null : { ...origin, kind: "callback", action: "confirm", target: event_id, answer };
}

/** Reactions and edits do not say which thread they are in. */
export function threadOf(content: Record<string, unknown>): string | null {
  const { rel_type, event_id } = relationOf(content);
  return rel_type === "m.thread" ? event_id : null;
}

const relationSchema = z.object({
  rel_type: z.string().catch(""),
  event_id: z.string().nullable().catch(null),
  key: z.string().catch(""),
});

function relationOf(content: Record<string, unknown>): z.infer<typeof relationSchema> {
  const relation = relationSchema.safeParse(content["m.relates_to"]);
  return relation.success ? relation.data : { rel_type: "", event_id: null, key: "" };
}
