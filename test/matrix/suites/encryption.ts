import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { repetitions } from "../../repetitions.ts";
import { REPOSITORY } from "../../repository-files.ts";
import { eventually, TIMEOUT } from "../../server/server-fixture.ts";
import type { BotProcess } from "../bot-process.ts";
import { ENCRYPTION } from "../encrypted-room.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import { keyHoldingProxy } from "../key-holding-proxy.ts";
import type { Person } from "../person.ts";
import { Scene } from "../scene.ts";

const MOCK = { MATRIX_PLATFORM_BACKEND: "mock" };

const encryptedRoom = (person: Person, others: string[]): Promise<string> =>
  person.openRoom(others, others, { initial_state: [ENCRYPTION] });

/** Waits until a person's client encrypts its messages in a room. */
async function knowsRoom(person: Person, room_id: string): Promise<void> {
  for (;;) {
    if (await person.client.getCrypto()?.isEncryptionEnabledInRoom(room_id)) return;
    await pause(20);
  }
}

/** The event types of the bot's messages as sent. */
const wireTypes = (person: Person, bot: BotProcess, room_id: string): string[] =>
  (person.client.getRoom(room_id)?.getLiveTimeline().getEvents() ?? [])
    .filter((event) => event.getSender() === bot.user_id && event.getType() === "m.room.message")
    .map((event) => event.getWireType());

export function encryptionSuite(): void {
  describe("in encrypted rooms", { skip: skipWithoutHomeserver }, () => {
    const homeserver = sharedHomeserver();

    test("the bot reads and answers, encrypted, also after a restart and to whoever comes later", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot(MOCK);
      const anna = await scene.person("anna", { encrypts: true });
      const room = await encryptedRoom(anna, [bot.user_id]);
      await anna.hears(room, /^Hello/);
      await anna.ask(room, "one", /You said: one/);
      await bot.kill();
      await anna.say(room, "while it was away");
      await bot.start();
      await anna.hears(room, /You said: while it was away/);
      const boris = await scene.person("boris", { encrypts: true });
      await anna.client.invite(room, boris.user_id);
      await boris.client.joinRoom(room);
      await knowsRoom(boris, room);
      await boris.ask(room, "two", /You said: two/);
      await anna.hears(room, /You said: two/);
      await anna.ask(room, "x".repeat(45_000), /x{1000}/);
      assert.deepEqual(anna.unreadable(room), []);
      assert.deepEqual([...new Set(wireTypes(anna, bot, room))], ["m.room.encrypted"]);
    });

    test("the library is loaded with the first encrypted room, and an older room can become one", TIMEOUT, async () => {
      await using proxy = await keyHoldingProxy(homeserver());
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({
        ...MOCK,
        MATRIX_HOMESERVER: proxy.url,
        NODE_OPTIONS: `--import ${join(REPOSITORY, "test/matrix/tell-imports.ts")}`,
      });
      const anna = await scene.person("anna", { encrypts: true });
      const room = await anna.openRoom([bot.user_id]);
      await anna.ask(room, "one", /You said: one/);
      await bot.stop();
      await bot.start();
      await anna.ask(room, "two", /You said: two/);
      assert.doesNotMatch(bot.stderr, /^imports/m);
      await anna.client.sendStateEvent(room, "m.room.encryption" as never, ENCRYPTION.content as never, "");
      await knowsRoom(anna, room);
      // Messages sent before the bot has seen the change are not encrypted for it.
      await anna.untilSo("its device is known", () => /^imports @matrix-org/m.test(bot.stderr));
      await devicesOf(anna, bot.user_id);
      await anna.ask(room, "three", /You said: three/);
      assert.deepEqual(new Set(wireTypes(anna, bot, room)), new Set(["m.room.message", "m.room.encrypted"]));
    });

    test(
      "a message whose key arrives late is answered then, even by a bot that was killed meanwhile",
      TIMEOUT,
      async () => {
        await using proxy = await keyHoldingProxy(homeserver());
        await using scene = new Scene(homeserver());
        const bot = await scene.bot({ ...MOCK, MATRIX_HOMESERVER: proxy.url, EVERSTEP_LOG_LEVEL: "info" });
        const anna = await scene.person("anna", { encrypts: true });
        const room = await encryptedRoom(anna, [bot.user_id]);
        await anna.hears(room, /^Hello/);
        proxy.hold();
        const said = await anna.say(room, "one");
        await eventually("it has no key", async () => bot.stderr.includes("cannot be decrypted yet"));
        await bot.kill();
        await bot.start();
        assert.ok(!anna.heard(room).some(({ text }) => text.includes("one")));
        proxy.release();
        // The next message also brings the keys that were held back.
        await anna.say(room, "two");
        const answer = await anna.hears(room, /You said: one/);
        assert.equal(answer.reply_to, said);
        await anna.hears(room, /You said: two/);
        assert.equal(anna.heard(room).filter(({ text }) => /You said: one/.test(text)).length, 1);
      },
    );

    test("pictures and files are refused in words", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot(MOCK);
      const anna = await scene.person("anna", { encrypts: true });
      const room = await encryptedRoom(anna, [bot.user_id]);
      await anna.hears(room, /^Hello/);
      const file = { url: "mxc://localhost/x", key: {}, iv: "", hashes: {}, v: "v2" };
      for (const msgtype of ["m.image", "m.file"])
        await anna.client.sendMessage(room, { msgtype, body: "cat.png", file } as never);
      const refusals = () => anna.heard(room).filter(({ text }) => text === "I can only read text.");
      await anna.untilSo("two refusals", () => refusals().length === 2, room);
      assert.ok(wireTypes(anna, bot, room).every((type) => type === "m.room.encrypted"));
    });

    test("every message is answered once and can be read, however often the bot is killed", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot(MOCK);
      const anna = await scene.person("anna", { encrypts: true });
      const room = await encryptedRoom(anna, [bot.user_id]);
      await anna.ask(room, "first", /You said: first/);
      const kills = repetitions("EVERSTEP_TEST_CRYPTO_KILLS", { few: 4, many: 50 });
      const said: string[] = ["first"];
      const say = async (text: string): Promise<void> => {
        said.push(text);
        await anna.say(room, text);
      };
      for (let kill = 0; kill < kills; kill++) {
        await say(`a${kill}`);
        // Half of the kills hit a bot that is starting, the others one in the middle of an answer.
        if (kill % 2 === 0) {
          await say(`b${kill}`);
          await pause(randomInt(250));
        }
        await bot.kill();
        bot.spawn();
        await pause(kill % 2 === 0 ? randomInt(2000) : 0);
        if (kill % 2 === 1) {
          await bot.kill();
          await bot.start();
        }
      }
      await bot.kill();
      await bot.start();
      await say("last");
      for (const text of said) await anna.hears(room, new RegExp(`^You said: ${text}$`));
      const answers = anna.heard(room).map(({ text }) => text);
      assert.deepEqual(
        answers.filter((text) => text.startsWith("You said: ")).sort(),
        said.map((text) => `You said: ${text}`).sort(),
      );
      assert.deepEqual(anna.unreadable(room), []);
      assert.ok(!answers.some((text) => text.includes("key for this message")));
    });
  });
}

/** Waits until a person's client knows a device of the user. */
async function devicesOf(person: Person, user_id: string): Promise<void> {
  for (;;) {
    const devices = await person.client.getCrypto()?.getUserDeviceInfo([user_id], true);
    if ((devices?.get(user_id)?.size ?? 0) > 0) return;
    await pause(50);
  }
}
