import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ServerProcess, TIMEOUT } from "../../server/server-fixture.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import type { Person } from "../person.ts";
import { agentEnvironment, Scene } from "../scene.ts";
import { wholeScene } from "../whole-scene.ts";

const texts = async (url: string, session_id: string): Promise<string[]> => {
  const response = await fetch(`${url}/api/agent-steps?session_id=${session_id}`);
  const { steps } = (await response.json()) as { steps: { guidance: unknown[] }[] };
  return steps.flatMap(({ guidance }) => guidance.map((said) => JSON.stringify(said)));
};

/** Messages outside of threads. */
const main = (person: Person, room: string): string[] =>
  person.heard(room).flatMap(({ thread, text }) => (thread === null ? [text] : []));

export function threadsSuite(): void {
  describe("a thread", { skip: skipWithoutHomeserver, concurrency: 2 }, () => {
    const homeserver = sharedHomeserver();
    const shared = wholeScene({ MATRIX_OPERATORS: "@olga-*:*" });

    test("keeps its answers, notices, dialogs and watched steps to itself", TIMEOUT, async () => {
      const { scene, bot, server } = shared();
      const olga = await scene.person("olga");
      const room = await olga.openRoom([bot.user_id]);
      await olga.hears(room, /^Hello/);
      const root = await olga.say(room, "!stop");
      await olga.hears(room, /No answer is under way/);
      const asked = await olga.sayInThread(room, root, "one");
      const answer = await olga.hears(room, /You said: one/);
      assert.deepEqual([answer.thread, answer.reply_to], [root, asked]);
      await olga.askInThread(room, root, "!wow", /There is no command/);
      const question = await olga.askInThread(room, root, "!reset", /will forget/);
      await olga.react(room, question.event_id, "👎");
      await olga.untilSo("the end of it", () => olga.heard(room).at(-1)?.text === "Cancelled: nothing was reset.");
      assert.equal(olga.heard(room).at(-1)?.thread, root);
      const frame = { step: "0", next_step: "1", state: {}, done: false };
      const frames = [
        { ...frame, ask: { text: "Go?", choices: [{ value: "yes" }, { value: "no" }] } },
        { ...frame, done: true },
      ];
      const body = JSON.stringify({
        agent_id: "threaded",
        moniker: "script",
        session_id: "threaded-1",
        params: { frames },
      });
      await fetch(`${server.url}/api/agents`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      await olga.askInThread(room, root, "!watch threaded-1", /^Watching/);
      await olga.untilSo("the question", () =>
        olga.heard(room).some(({ text, thread }) => /Go\?/.test(text) && thread === root),
      );
      const go = olga.heard(room).find(({ text }) => /Go\?/.test(text)) ?? assert.fail();
      await olga.react(room, go.event_id, "👍");
      await olga.untilSo("its end", () =>
        olga.heard(room).some(({ text, thread }) => /is done/.test(text) && thread === root),
      );
      assert.deepEqual(
        main(olga, room).map((text) => text.slice(0, 5)),
        ["Hello", "No an"],
      );
    });

    test("is part of the one chat, unless MATRIX_THREADS=own gives it a session", TIMEOUT, async () => {
      await using server = await ServerProcess.start();
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ ...agentEnvironment(server.url), MATRIX_THREADS: "own" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      await anna.ask(room, "Zero", /You said: Zero/);
      const [first, second] = [await anna.say(room, "!stop"), await anna.say(room, "!stop")];
      await anna.askInThread(room, first, "One", /You said: One/);
      await anna.askInThread(room, second, "Two", /You said: Two/);
      await bot.kill();
      await anna.sayInThread(room, first, "Three");
      await bot.start();
      await anna.hears(room, /You said: Three/);
      const response = await fetch(`${server.url}/api/agents/matrix/sessions`);
      const { sessions } = (await response.json()) as { sessions: { session_id: string }[] };
      const said = await Promise.all(sessions.map(({ session_id }) => texts(server.url, session_id)));
      assert.deepEqual(
        said.map((each) => each.map((one) => /One|Two|Three|Zero/.exec(one)?.[0])).sort((a, b) => a.length - b.length),
        [["Two"], ["One", "Three"]],
      );
      await anna.askInThread(room, first, "!save mine", /^Saved as `mine`/);
      await anna.askInThread(room, first, "!context", /saved last as `mine`/);
      await anna.askInThread(room, second, "!context", /not saved yet/);
      await anna.askInThread(room, first, "!reset", /conversation of its own/);
      await anna.ask(room, "!context", /not saved yet/);
    });
  });
}
