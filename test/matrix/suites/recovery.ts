import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { encodeRecoveryKey } from "matrix-js-sdk/lib/crypto-api/recovery-key.js";
import {
  VerificationPhase,
  VerificationRequestEvent,
  VerifierEvent,
} from "matrix-js-sdk/lib/crypto-api/verification.js";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { ENCRYPTION } from "../encrypted-room.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import { Scene } from "../scene.ts";

const newRecoveryKey = (): string => encodeRecoveryKey(randomBytes(32)) ?? assert.fail();

export function recoverySuite(): void {
  describe("the bot's identity and key backup", { skip: skipWithoutHomeserver }, () => {
    const homeserver = sharedHomeserver();

    test(
      "are set up with the recovery key, and a new device of the bot reads what was said before",
      TIMEOUT,
      async () => {
        await using scene = new Scene(homeserver());
        const account = await scene.person("bot", { follows: false });
        const environment = {
          MATRIX_PLATFORM_BACKEND: "mock",
          MATRIX_USER_ID: account.user_id,
          MATRIX_ACCESS_TOKEN: "",
          MATRIX_PASSWORD: account.password,
          MATRIX_RECOVERY_KEY: newRecoveryKey(),
        };
        const bot = await scene.bot(environment);
        const anna = await scene.person("anna", { encrypts: true });
        const room = await anna.openRoom([bot.user_id], [bot.user_id], { initial_state: [ENCRYPTION] });
        await anna.ask(room, "one", /You said: one/);
        const crypto = anna.client.getCrypto() ?? assert.fail();
        const signedDevices = async (): Promise<number> => {
          const devices = [...((await crypto.getUserDeviceInfo([bot.user_id], true)).get(bot.user_id)?.values() ?? [])];
          const states = await Promise.all(
            devices.map(({ deviceId }) => crypto.getDeviceVerificationStatus(bot.user_id, deviceId)),
          );
          return states.filter((state) => state?.signedByOwner).length;
        };
        while ((await signedDevices()) < 1) await pause(50);
        const backedUp = async (): Promise<number> => {
          const response = await fetch(`${scene.url}/_matrix/client/v3/room_keys/version`, {
            headers: { authorization: `Bearer ${account.access_token}` },
          });
          return ((await response.json()) as { count?: number }).count ?? 0;
        };
        while ((await backedUp()) < 2) await pause(50);
        // A second device of the same account, with its own state and the same recovery key.
        await bot.stop();
        const second = await scene.bot(environment);
        await anna.ask(room, "two", /You said: two/);
        while ((await signedDevices()) < 2) await pause(50);
        assert.equal(second.stderr, "");
      },
    );

    test("a person verifies the bot by emoji", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock", MATRIX_RECOVERY_KEY: newRecoveryKey() });
      const anna = await scene.person("anna", { encrypts: true });
      const crypto = anna.client.getCrypto() ?? assert.fail();
      await crypto.bootstrapCrossSigning({
        authUploadDeviceSigningKeys: async (upload) => {
          await upload(null);
        },
      });
      const room = await anna.openRoom([bot.user_id], [bot.user_id], { initial_state: [ENCRYPTION] });
      await anna.ask(room, "one", /You said: one/);
      while (!(await crypto.userHasCrossSigningKeys(bot.user_id, true))) await pause(50);
      const request = await crypto.requestVerificationDM(bot.user_id, room);
      while (request.phase !== VerificationPhase.Ready)
        await new Promise((resolve) => request.once(VerificationRequestEvent.Change, resolve as () => void));
      const verifier = await request.startVerification("m.sas.v1");
      const shown = Promise.withResolvers<string[]>();
      verifier.on(VerifierEvent.ShowSas, (sas) => {
        shown.resolve((sas.sas.emoji ?? []).map(([symbol]) => symbol));
        void sas.confirm();
      });
      await verifier.verify();
      const emoji = await shown.promise;
      const { text } = await anna.hears(room, /Please compare/);
      assert.equal(emoji.length, 7);
      let at = 0;
      for (const symbol of emoji) {
        at = text.indexOf(symbol, at);
        assert.ok(at >= 0, `${symbol} is not in order in ${text}`);
        at += symbol.length;
      }
      const isVerified = async (): Promise<boolean> =>
        (await crypto.getUserVerificationStatus(bot.user_id)).isCrossSigningVerified();
      while (!(await isVerified())) await pause(50);
      const events = anna.client.getRoom(room)?.getLiveTimeline().getEvents() ?? [];
      const steps = events.filter(
        (event) => event.getSender() === bot.user_id && event.getType().startsWith("m.key.verification."),
      );
      assert.ok(steps.length > 0);
      assert.deepEqual([...new Set(steps.map((event) => event.getWireType()))], ["m.room.encrypted"]);
    });
  });
}
