import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromRoomEvent } from "../../src/surfaces/matrix/events/converter.ts";
import type { RoomEvent } from "../../src/surfaces/matrix/transport/room-event.ts";

const BOT = { user_id: "@bot:x", display_name: "Ever Step" };
const origin = { event_id: "$1", room_id: "!r:x", user_id: "@anna:x", sent_at: 7, thread: null, chat: null };

function event(content: Record<string, unknown>, changes: Partial<RoomEvent> = {}): RoomEvent {
  const { event_id, room_id, user_id: sender, sent_at: origin_server_ts } = origin;
  return { event_id, room_id, sender, origin_server_ts, type: "m.room.message", content, ...changes };
}
const text = (body: string, more: Record<string, unknown> = {}): RoomEvent =>
  event({ msgtype: "m.text", body, ...more });
const replyTo = (body: string): RoomEvent => text(body, { "m.relates_to": { "m.in_reply_to": { event_id: "$0" } } });
const inThread = (more: object): RoomEvent => {
  const relation = { rel_type: "m.thread", event_id: "$t", "m.in_reply_to": { event_id: "$0" }, ...more };
  return text("why?", { "m.relates_to": relation });
};
const message = (said: string, more: object = {}) => ({
  ...origin,
  kind: "message",
  text: said,
  is_addressed: false,
  replied_to: null,
  quoted: null,
  is_text: true,
  ...more,
});
const command = (said: string, name: string, argument: string, more = {}) => ({
  ...message(said),
  kind: "command",
  name,
  argument,
  ...more,
});

const CASES: [name: string, event: RoomEvent, incoming: { kind: string; [field: string]: unknown } | null][] = [
  ["a text", text("hello"), message("hello")],
  ["a command", text("!save tea"), command("!save tea", "save", "tea")],
  ["a command in capitals", text("!SAVE"), command("!SAVE", "save", "")],
  ["a command of several lines", text("!guide s one\ntwo"), command("!guide s one\ntwo", "guide", "s one\ntwo")],
  ["a mark without a word", text("! x"), message("! x")],
  ["a mark before a number", text("!1"), message("!1")],
  ["a text that calls the bot by its id", text("@bot:x: hi"), message("hi", { is_addressed: true })],
  ["a text that calls it by its name", text("ever step, hi"), message("hi", { is_addressed: true })],
  ["a command after its name", text("bot: !help"), command("!help", "help", "", { is_addressed: true })],
  ["a word that only begins as its name", text("bottle: hi"), message("bottle: hi")],
  ["its name without a call", text("bot is nice"), message("bot is nice")],
  [
    "a text that mentions it",
    text("!wow", { "m.mentions": { user_ids: ["@bot:x"] } }),
    command("!wow", "wow", "", { is_addressed: true }),
  ],
  ["a reply without a quotation", replyTo("why?"), message("why?", { replied_to: "$0" })],
  [
    "a reply with a quotation",
    replyTo("> <@bot:x> one\n> two\n\nwhy?"),
    message("why?", { replied_to: "$0", quoted: "one\ntwo" }),
  ],
  ["a text in a thread", inThread({ is_falling_back: true }), message("why?", { thread: "$t" })],
  ["a reply in a thread", inThread({}), message("why?", { thread: "$t", replied_to: "$0" })],
  ["a quotation that is no reply", text("> one\n\nwhy?"), message("> one\n\nwhy?")],
  [
    "an edit",
    text("* new", {
      "m.new_content": { msgtype: "m.text", body: "new" },
      "m.relates_to": { rel_type: "m.replace", event_id: "$0" },
    }),
    { ...origin, kind: "callback", action: "edit", target: "$0", text: "new" },
  ],
  ["its own echo", event({ msgtype: "m.text", body: "x" }, { sender: "@bot:x" }), null],
  ["a notice", event({ msgtype: "m.notice", body: "x" }), null],
  ["a message without a type", event({ body: "x" }), null],
  ["a message that was taken back", event({}), null],
  ["a body that is no text", event({ msgtype: "m.text", body: 7 }), message("")],
  ["a picture", event({ msgtype: "m.image", body: "!save" }), message("!save", { is_text: false })],
  ["a change of the room", event({ name: "x" }, { type: "m.room.name", state_key: "" }), null],
  ...[
    ["👍", "yes"],
    ["✅", "yes"],
    ["👍🏽", "yes"],
    ["✔️", "yes"],
    ["👎", "no"],
    ["❌", "no"],
    ["2️⃣", 2],
  ].map(([key, answer]): [string, RoomEvent, { kind: string; [field: string]: unknown }] => [
    `a reaction ${key}`,
    event({ "m.relates_to": { rel_type: "m.annotation", event_id: "$0", key } }, { type: "m.reaction" }),
    { ...origin, kind: "callback", action: "confirm", target: "$0", answer },
  ]),
  [
    "another reaction",
    event({ "m.relates_to": { rel_type: "m.annotation", event_id: "$0", key: "🎉" } }, { type: "m.reaction" }),
    null,
  ],
];

describe("an event of a room", () => {
  for (const [name, roomEvent, incoming] of CASES)
    test(`${name} becomes ${incoming === null ? "nothing" : `a ${incoming.kind}`}`, () =>
      assert.deepEqual(fromRoomEvent(roomEvent, BOT), incoming));
});
