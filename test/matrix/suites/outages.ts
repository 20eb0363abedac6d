import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Preset } from "matrix-js-sdk";
import { skipWithoutSynapse } from "../homeserver.ts";
import { Scene } from "../scene.ts";
import { WrittenAgent } from "../stand-in.ts";
import { SynapseProcess } from "../synapse/synapse-process.ts";

/** Synapse's default is 10 messages and one more every 5 seconds; this limit is reached sooner and over sooner. */
const LOW_LIMIT = { per_second: 1, burst_count: 2 };

export function outagesSuite(): void {
  describe("a homeserver", { skip: skipWithoutSynapse, concurrency: 2 }, () => {
    test("that goes down in the middle of everything costs nothing, and nothing is said twice", {
      timeout: 90_000,
    }, async () => {
      await using synapse = await SynapseProcess.start();
      await using agent = await WrittenAgent.open();
      await using scene = new Scene(synapse.url);
      const bot = await scene.bot({ AGENT_WS_URL: agent.url, AGENT_BASE_URL: "http://127.0.0.1:1" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      await anna.say(room, "one");
      const first = await agent.question(0);
      first.say("Half of");
      await anna.hears(room, /^Half of …/);
      await anna.say(room, "two");
      await anna.hears(room, /Queued/);
      await synapse.stop();
      first.end(" the whole.");
      const second = await agent.question(1);
      second.end("The second.");
      await synapse.start();
      await anna.hears(room, /^The second\.$/);
      await anna.say(room, "!reset");
      await anna.hears(room, /will forget/);
      await synapse.stop("SIGKILL");
      await bot.kill();
      // The bot starts first, and waits for its homeserver.
      bot.spawn();
      await synapse.start();
      await anna.say(room, "!no");
      await anna.hears(room, /^Cancelled/);
      await anna.say(room, "three");
      (await agent.question(2)).end("The third.");
      await anna.hears(room, /^The third\.$/);
      const answers = anna.heard(room).flatMap(({ is_notice, text }) => (is_notice ? [] : [text]));
      assert.deepEqual(answers, ["Half of the whole.", "The second.", "The third."]);
      assert.deepEqual(agent.asked, ["one", "two", "three"]);
    });

    test("with a low rate limit gets whole answers before previews, and loses none", {
      timeout: 120_000,
    }, async () => {
      await using synapse = await SynapseProcess.start({ message_limit: LOW_LIMIT });
      await using agent = await WrittenAgent.open();
      await using scene = new Scene(synapse.url);
      const bot = await scene.bot({ AGENT_WS_URL: agent.url, AGENT_BASE_URL: "http://127.0.0.1:1" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id], [bot.user_id], { preset: Preset.PublicChat });
      await anna.say(room, "a long one");
      const answering = await agent.question(0);
      const words = Array.from({ length: 60 }, (_, at) => `word${at}`);
      for (const word of words) {
        answering.say(`${word} `);
        await wait(50);
      }
      answering.end("end.");
      const long = await anna.hears(room, /end\.$/);
      assert.equal(long.text, `${words.join(" ")} end.`);
      assert.ok(long.versions.length < 6, `edits are few: ${long.versions.length}`);
      // The limit applies per sender, so each of several people sends as much as it allows.
      for (const number of [1, 2, 3, 4]) {
        const other = await scene.person(`other${number}`, { follows: false });
        await other.client.joinRoom(room);
        await other.say(room, `question ${number}`);
        (await agent.question(number)).end(`Answer ${number}.`);
      }
      await anna.hears(room, /^Answer 4\.$/);
      const answers = anna.heard(room).filter(({ sender, is_notice }) => sender === bot.user_id && !is_notice);
      assert.deepEqual(
        answers.map(({ text }) => text).slice(1),
        [1, 2, 3, 4].map((number) => `Answer ${number}.`),
      );
    });
  });
}
