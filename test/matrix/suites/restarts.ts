import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { ModelCall } from "../../llm/model-call.ts";
import { ServerProcess, TIMEOUT } from "../../server/server-fixture.ts";
import { beginTale } from "../begun-tale.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import type { Person } from "../person.ts";
import { agentEnvironment, Scene } from "../scene.ts";
import { WrittenAgent } from "../stand-in.ts";

const reply = (text: string) => (call: ModelCall) => call.reply(text);
const answers = (person: Person, room: string): string[] =>
  person.heard(room).flatMap(({ sender, is_notice, text }) => (is_notice || !sender.startsWith("@bot-") ? [] : [text]));

export function restartsSuite(): void {
  describe("a bot that dies", { skip: skipWithoutHomeserver, concurrency: 2 }, () => {
    const homeserver = sharedHomeserver();

    test("answers 30 messages that were sent meanwhile, each once and in order", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      await anna.ask(room, "before", /You said: before/);
      await bot.kill();
      const texts = Array.from({ length: 30 }, (_, at) => `question ${at}`);
      for (const text of texts) await anna.say(room, text);
      await bot.start();
      await anna.hears(room, /question 29/);
      assert.deepEqual(
        answers(anna, room),
        ["before", ...texts].map((text) => `You said: ${text}`),
      );
    });

    test("fetches what a sync leaves out after a long absence", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock" });
      const [anna, boris] = [await scene.person("anna"), await scene.person("boris")];
      const room = await anna.openRoom([bot.user_id]);
      const other = await boris.openRoom([bot.user_id]);
      await anna.ask(room, "before", /You said: before/);
      await bot.stop();
      // A sync returns at most 50 events of a room.
      const texts = Array.from({ length: 56 }, (_, at) => `question ${at}`);
      for (const text of texts) await anna.say(room, text);
      await boris.say(other, "mine");
      await bot.start();
      await anna.hears(room, /question 55/);
      await boris.hears(other, /You said: mine/);
      assert.deepEqual(
        answers(anna, room),
        ["before", ...texts].map((text) => `You said: ${text}`),
      );
    });

    test("is found by an invite that came meanwhile", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock" });
      const anna = await scene.person("anna");
      await bot.kill();
      const { room_id } = await anna.client.createRoom({ invite: [bot.user_id] });
      await bot.start();
      await anna.hears(room_id, /^Hello/);
      await anna.ask(room_id, "one", /You said: one/);
    });

    test("keeps an open question", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      await anna.ask(room, "!save one", /^Saved/);
      await anna.ask(room, "!reset", /will forget/);
      await bot.kill();
      await anna.say(room, "!yes");
      await bot.start();
      await anna.hears(room, /starts afresh/);
      await anna.ask(room, "!load", /`one`/);
      await bot.kill();
      await bot.start();
      await anna.ask(room, "1", /^Loaded `one`/);
      assert.equal(anna.heard(room).filter(({ text }) => /starts afresh/.test(text)).length, 1);
    });

    test("in the middle of an answer finds it again at the agent, which was asked once", TIMEOUT, async () => {
      await using tale = await beginTale(homeserver());
      const { model, bot, anna, room, call } = tale;
      await bot.kill();
      call.say(" a time.");
      call.end();
      await bot.start();
      await anna.hears(room, /^Once upon a time\.$/);
      model.otherwise(reply("Second."));
      await anna.ask(room, "And another.", /^Second\.$/);
      assert.deepEqual(answers(anna, room), ["Once upon a time.", "Second."]);
      assert.equal(model.calls.length, 2, "the agent was asked once for each");
    });

    test("and whose agent dies in the middle of an answer still brings it once", TIMEOUT, async () => {
      await using tale = await beginTale(homeserver());
      const { model, server, anna, room } = tale;
      await server.kill();
      model.otherwise(reply("A whole tale."));
      await anna.ask(room, "!context", /cannot be reached/);
      await anna.say(room, "And another.");
      await server.start();
      await anna.untilSo(
        "two answers",
        () => answers(anna, room).filter((text) => text === "A whole tale.").length === 2,
        room,
      );
      assert.deepEqual(answers(anna, room), ["A whole tale.", "A whole tale."]);
      const response = await fetch(`${server.url}/api/agent-steps?agent_id=default`);
      const { steps } = (await response.json()) as { steps: { guidance: { text: string }[] }[] };
      assert.deepEqual(
        steps.flatMap(({ guidance }) => guidance.map(({ text }) => text)),
        ["Tell me a tale.", "And another."],
      );
    });

    test("with an agent that keeps no record asks it again, and the room sees one answer", TIMEOUT, async () => {
      const agent = await WrittenAgent.open();
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ AGENT_WS_URL: agent.url, AGENT_BASE_URL: "http://127.0.0.1:1" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      await anna.say(room, "one");
      (await agent.question(0)).say("Half of");
      await anna.hears(room, /^Half of …/);
      await agent[Symbol.asyncDispose]();
      await anna.ask(room, "two", /cannot be reached right now|Queued/);
      await using back = await WrittenAgent.open(agent.port);
      (await back.question(0)).end("The whole.");
      (await back.question(1)).end("The second.");
      await anna.hears(room, /^The second\.$/);
      assert.deepEqual(answers(anna, room), ["The whole.", "The second."]);
    });

    test("at any moment loses nothing and says nothing twice", { timeout: 90_000 }, async () => {
      await using server = await ServerProcess.start();
      await using scene = new Scene(homeserver());
      const bot = await scene.bot(agentEnvironment(server.url));
      const [anna, boris] = [await scene.person("anna"), await scene.person("boris")];
      const room = await anna.openRoom([bot.user_id, boris.user_id], [bot.user_id]);
      await boris.client.joinRoom(room);
      const asked: string[] = [];
      for (let life = 0; life < 4; life++) {
        for (const [person, name] of [
          [anna, "qa"],
          [boris, "qb"],
        ] as const)
          for (let number = 0; number < 4; number++) {
            const text = `${name}${life}x${number}`;
            asked.push(text);
            await person.say(room, text);
          }
        await anna.say(room, `!save life-${life}`);
        await wait(life * 40);
        const child = bot.isAlive ? bot : null;
        await child?.kill();
        if (life % 2 === 0) await bot.start();
        else {
          // Killed again while it starts.
          const starting = bot.spawn();
          await wait(250 + life * 60);
          const exited = once(starting, "exit");
          starting.kill("SIGKILL");
          await exited;
          await bot.start();
        }
      }
      const answeredTexts = () => answers(anna, room).map((text) => /You said: (\w+)/.exec(text)?.[1] ?? text);
      await anna.untilSo("all answers", () => asked.every((text) => answeredTexts().includes(text)), room);
      await anna.hears(room, /^Saved as `life-3`/);
      assert.deepEqual(answeredTexts().toSorted(), asked.toSorted());
      assert.equal(anna.heard(room).filter(({ text }) => text.startsWith("Saved as")).length, 4);
    });

    test("leaves its state to one bot at a time", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ MATRIX_PLATFORM_BACKEND: "mock" });
      const { pid } = bot;
      const second = bot.spawn();
      const [code] = (await once(second, "exit")) as [number];
      assert.equal(code, 1);
      assert.match(bot.stderr, /^matrix_state_locked: another bot uses .*; stop it, or/m);
      process.kill(pid, "SIGKILL");
    });
  });
}
