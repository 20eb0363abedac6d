import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import type { Person } from "../person.ts";
import { Scene } from "../scene.ts";

const PUBLIC = { preset: "public_chat" } as never;

/** Upgrades the room; resolves with its replacement. */
async function upgrade(person: Person, room_id: string): Promise<string> {
  const { replacement_room } = await person.client.upgradeRoom(room_id, "11");
  return replacement_room;
}

const joined = (person: Person, room: string, user_id: string): Promise<void> =>
  person.untilSo("the bot followed", () => person.client.getRoom(room)?.getMember(user_id)?.membership === "join");

export function upgradesSuite(): void {
  describe("a room that is upgraded", { skip: skipWithoutHomeserver, concurrency: 2 }, () => {
    const homeserver = sharedHomeserver();

    test("is followed, with what was open in it, also by a bot that was away", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id], [bot.user_id], PUBLIC);
      await anna.ask(room, "!reset", /will forget/);
      const next = await upgrade(anna, room);
      await joined(anna, next, bot.user_id);
      await anna.ask(next, "!yes", /starts afresh/);
      await bot.kill();
      const last = await upgrade(anna, next);
      await bot.start();
      await joined(anna, last, bot.user_id);
      await anna.ask(last, "one", /You said: one/);
      for (const each of [next, last]) assert.ok(!anna.heard(each).some(({ text }) => text.startsWith("Hello")));
    });

    test(
      "and lets nobody in is followed with the invite; what could not be sent to the old one is sent there",
      TIMEOUT,
      async () => {
        await using scene = new Scene(homeserver());
        const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock" });
        const anna = await scene.person("anna");
        const room = await anna.openRoom([bot.user_id]);
        await anna.ask(room, "one", /You said: one/);
        await bot.kill();
        await anna.say(room, "two");
        const next = await upgrade(anna, room);
        await anna.client.invite(next, bot.user_id);
        await bot.start();
        await joined(anna, next, bot.user_id);
        await anna.hears(next, /^You said: two$/);
        assert.deepEqual(
          anna.heard(next).map(({ text }) => text),
          ["You said: two"],
        );
      },
    );

    test("by somebody who is not allowed is left alone", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const anna = await scene.person("anna");
      const eve = await scene.person("eve");
      const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock", MATRIX_ALLOWED_USERS: anna.user_id });
      const own = await anna.openRoom([bot.user_id]);
      const { room_id: shared } = await anna.client.createRoom({
        invite: [bot.user_id, eve.user_id],
        preset: "public_chat" as never,
        power_level_content_override: { users: { [anna.user_id]: 100, [eve.user_id]: 100 } },
      });
      await eve.client.joinRoom(shared);
      await joined(anna, shared, bot.user_id);
      const next = await upgrade(eve, shared);
      await anna.ask(own, "one", /You said: one/);
      assert.notEqual(eve.client.getRoom(next)?.getMember(bot.user_id)?.membership, "join");
    });
  });
}
