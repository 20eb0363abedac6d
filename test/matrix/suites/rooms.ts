import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { ENCRYPTION } from "../encrypted-room.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import { Scene } from "../scene.ts";

export function roomsSuite(): void {
  describe("whom and where the bot answers", { skip: skipWithoutHomeserver, concurrency: 2 }, () => {
    const homeserver = sharedHomeserver();

    test(
      "without encryption, an encrypted room gets one notice and no welcome, also after a restart",
      TIMEOUT,
      async () => {
        await using scene = new Scene(homeserver());
        const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock", MATRIX_ENCRYPTION: "off" });
        const anna = await scene.person("anna");
        const { room_id } = await anna.client.createRoom({ invite: [bot.user_id], initial_state: [ENCRYPTION] });
        await anna.hears(room_id, /is encrypted.*cannot read/);
        assert.deepEqual(
          anna.heard(room_id).map(({ text }) => text.slice(0, 8)),
          ["This roo"],
          "there is no welcome",
        );
        const later = await anna.openRoom([bot.user_id]);
        await anna.ask(later, "one", /You said: one/);
        await anna.client.sendStateEvent(later, "m.room.encryption" as never, ENCRYPTION.content as never, "");
        await anna.hears(later, /is encrypted/);
        await bot.kill();
        await bot.start();
        const other = await anna.openRoom([bot.user_id]);
        await anna.ask(other, "two", /You said: two/);
        for (const room of [room_id, later])
          assert.equal(anna.heard(room).filter(({ text }) => text.includes("is encrypted")).length, 1);
      },
    );

    test("only allowed people may invite it and talk to it", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const anna = await scene.person("anna");
      const eve = await scene.person("eve");
      const bot = await scene.bot({
        MATRIX_PLATFORM_BACKEND: "mock",
        MATRIX_ALLOWED_USERS: `@nobody:*, ${anna.user_id}`,
      });
      const { room_id: evil } = await eve.client.createRoom({ invite: [bot.user_id] });
      const room = await anna.openRoom([bot.user_id]);
      await anna.client.invite(room, eve.user_id);
      await eve.client.joinRoom(room);
      await eve.say(room, "let me in");
      await eve.say(room, "!help");
      await anna.ask(room, "one", /You said: one/);
      const said = anna.heard(room).filter(({ sender }) => sender === bot.user_id);
      assert.deepEqual(
        said.map(({ text }) => text.slice(0, 5)),
        ["Hello", "You s"],
      );
      assert.equal(eve.client.getRoom(evil)?.getMember(bot.user_id)?.membership, "invite");
      // A start that allows it accepts an invite that was left open.
      await bot.stop();
      await bot.start({ MATRIX_ALLOWED_USERS: "*" });
      await eve.hears(evil, /^Hello/);
      await eve.ask(evil, "two", /You said: two/);
    });

    test("nothing that was said before it joined is answered", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const account = await scene.person("early", { follows: false });
      const anna = await scene.person("anna");
      const { room_id: joined } = await anna.client.createRoom({ invite: [account.user_id] });
      await account.client.joinRoom(joined);
      await anna.say(joined, "before its first start");
      const bot = await scene.bot({
        MATRIX_PLATFORM_BACKEND: "mock",
        MATRIX_USER_ID: account.user_id,
        MATRIX_ACCESS_TOKEN: account.access_token,
      });
      const { room_id: room } = await anna.client.createRoom({});
      await anna.say(room, "before it was invited");
      await anna.client.invite(room, bot.user_id);
      await anna.hears(room, /^Hello/);
      await anna.ask(room, "now", /You said: now/);
      await anna.ask(joined, "here", /You said: here/);
      for (const place of [room, joined])
        assert.ok(!anna.heard(place).some(({ text }) => text.includes("before")), place);
    });

    test("it says plainly why it is not let in", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      await assert.rejects(
        scene.bot({ MATRIX_PLATFORM_BACKEND: "mock", MATRIX_ACCESS_TOKEN: "nonsense" }),
        /matrix_login_failed: .* does not let @bot-.* in .*; check MATRIX_USER_ID/,
      );
      const other = await scene.person("other", { follows: false });
      await assert.rejects(
        scene.bot({ MATRIX_PLATFORM_BACKEND: "mock", MATRIX_ACCESS_TOKEN: other.access_token }),
        /config_invalid: MATRIX_USER_ID is @bot-.* and the token belongs to @other-/,
      );
    });

    test("with a password it keeps its device, and comes back when its token is gone", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const account = await scene.person("withpassword", { follows: false });
      const bot = await scene.bot({
        MATRIX_PLATFORM_BACKEND: "mock",
        MATRIX_USER_ID: account.user_id,
        MATRIX_ACCESS_TOKEN: "",
        MATRIX_PASSWORD: account.password,
      });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      await anna.ask(room, "one", /You said: one/);
      assert.equal(await bot.health(), 0);
      await bot.kill();
      await bot.start();
      await anna.ask(room, "two", /You said: two/);
      const own = async () =>
        (await account.client.getDevices()).devices.filter(({ display_name }) => display_name === "Everstep");
      assert.equal((await own()).length, 1);
      const [device] = await own();
      // Another client ends its session while it works.
      await account.client
        .deleteDevice(device?.device_id ?? "", {
          type: "m.login.password",
          identifier: { type: "m.id.user", user: account.user_id },
          password: account.password,
        })
        .catch((error: unknown) => assert.fail(String(error)));
      await anna.ask(room, "three", /You said: three/);
      assert.deepEqual(
        (await own()).map(({ device_id }) => device_id),
        [device?.device_id],
      );
    });
  });
}
