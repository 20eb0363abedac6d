import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { JsonObject } from "../../../src/domain/json.ts";
import { ServerProcess, TIMEOUT } from "../../server/server-fixture.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import { agentEnvironment, Scene } from "../scene.ts";
import { wholeScene } from "../whole-scene.ts";

const OPERATORS = { MATRIX_OPERATORS: "@olga-*:*" };
const FRAME = { step: "0", next_step: "1", state: {}, done: false };
const yesOrNo = (text: string) => ({
  ...FRAME,
  ask: { text, choices: [{ value: "yes", label: "Do it" }, { value: "no" }] },
});
const DONE = { ...FRAME, done: true };
const APPROVAL = {
  ...FRAME,
  ask: {
    text: "May I?",
    choices: [{ value: "approve" }, { value: "always" }, { value: "deny" }],
    about: { kind: "tool", tool: "files/delete", args: { path: "old.txt" } },
  },
};

async function call(url: string, path: string, body?: unknown): Promise<JsonObject> {
  const headers = { "content-type": "application/json" };
  const options = body === undefined ? {} : { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`${url}${path}`, options);
  assert.ok(response.ok, `${path}: ${response.status}`);
  return (await response.json()) as JsonObject;
}

const script = (url: string, session_id: string, frames: object[]): Promise<JsonObject> =>
  call(url, "/api/agents", { agent_id: session_id, moniker: "script", session_id, params: { frames } });

/** The answers a session received, in order. */
async function answers(url: string, session_id: string): Promise<unknown[]> {
  const { steps } = (await call(url, `/api/agent-steps?session_id=${session_id}`)) as {
    steps: { guidance: JsonObject[] }[];
  };
  return steps.flatMap(({ guidance }) => guidance.map(({ answer }) => answer));
}

export function steeringSuite(): void {
  describe("steering from a phone", { skip: skipWithoutHomeserver, concurrency: 3 }, () => {
    const whole = wholeScene(OPERATORS);
    const settle = async (name: string) => {
      const { scene, bot, server } = whole();
      const person = await scene.person(name);
      return { person, room: await person.openRoom([bot.user_id]), url: server.url };
    };

    test(
      "a question is answered by a reply, by !answer and by a reaction, and each is receipted",
      TIMEOUT,
      async () => {
        const { person: olga, room, url } = await settle("olga");
        const form = { type: "object", properties: { n: { type: "integer" } } };
        await script(url, "asker-1", [
          yesOrNo("Deploy?"),
          { ...FRAME, ask: { text: "How many?", schema: form } },
          yesOrNo("Really?"),
          yesOrNo("Sure?"),
          { ...FRAME, ask: { text: "Which?", choices: [{ value: "a" }, { value: "b" }, { value: "c" }] } },
          DONE,
        ]);
        await olga.ask(room, "!watch asker-1", /^Watching `asker-1`/);
        const deploy = await olga.hears(room, /asks:\*\* Deploy\?\s+1\. Do it\s+2\. no/);
        await olga.seesSigns(room, deploy.event_id, ["👍", "👎"]);
        const reply = await olga.reply(room, deploy.event_id, "2");
        await olga.seesSigns(room, reply, ["✅ step 1"]);
        await olga.hears(room, /asks:\*\* How many\?/);
        await olga.ask(room, "!answer asker-1 many", /answer\.n/);
        const command = await olga.say(room, "!answer asker-1 n=3");
        await olga.seesSigns(room, command, ["✅ step 2"]);
        const really = await olga.hears(room, /asks:\*\* Really\?/);
        await olga.react(room, really.event_id, "👍");
        await olga.seesSigns(room, really.event_id, ["👍", "👎", "✅ step 3"]);
        const sure = await olga.hears(room, /asks:\*\* Sure\?/);
        await olga.reply(room, sure.event_id, "!no");
        const which = await olga.hears(room, /asks:\*\* Which\?/);
        await olga.react(room, which.event_id, "3️⃣");
        await olga.hears(room, /`asker-1` is done/);
        assert.deepEqual(await answers(url, "asker-1"), ["no", { n: 3 }, "yes", "no", "c"]);
        await olga.reply(room, sure.event_id, "yes");
        await olga.hears(room, /no longer asks that/);
      },
    );

    test("an approval shows the call's arguments, and thumbs approve once or deny", TIMEOUT, async () => {
      const { person: olga, room, url } = await settle("olga");
      await script(url, "approver-1", [APPROVAL, APPROVAL, DONE]);
      await olga.ask(room, "!watch approver-1", /^Watching/);
      const first = await olga.hears(room, /wants to run\*\* `files\/delete`[\s\S]*"path": "old\.txt"[\s\S]*3\. deny/);
      await olga.react(room, first.event_id, "👍🏽");
      await olga.untilSo(
        "a second one",
        () => olga.heard(room).filter(({ text }) => /wants to run/.test(text)).length === 2,
      );
      const second = olga.heard(room).findLast(({ text }) => /wants to run/.test(text)) ?? assert.fail();
      await olga.react(room, second.event_id, "👎");
      await olga.hears(room, /`approver-1` is done/);
      assert.deepEqual(await answers(url, "approver-1"), ["approve", "deny"]);
    });

    test("a session that has not taken a step yet can be watched", TIMEOUT, async () => {
      const { person: olga, room, url } = await settle("olga");
      const session_id = "early-1";
      const params = { frames: [yesOrNo("Ready?"), DONE] };
      const options = { hold_before: ["*"] };
      await call(url, "/api/agents", { agent_id: "early", moniker: "script", session_id, params, options });
      await olga.ask(room, "!watch early-1", /^Watching/);
      await call(url, "/api/sessions/early-1/resume", {});
      await olga.hears(room, /asks:\*\* Ready\?/);
    });

    test("only operators answer", TIMEOUT, async () => {
      const { person: olga, room, url } = await settle("olga");
      const { scene } = whole();
      const anna = await scene.person("anna");
      await olga.client.invite(room, anna.user_id);
      await anna.client.joinRoom(room);
      await script(url, "guarded-1", [yesOrNo("Open?"), DONE]);
      await olga.ask(room, "!watch guarded-1", /^Watching/);
      const open = await olga.hears(room, /asks:\*\* Open\?/);
      await anna.reply(room, open.event_id, "1");
      await olga.hears(room, /Only operators/);
      await anna.react(room, open.event_id, "👍");
      await olga.untilSo(
        "two refusals",
        () => olga.heard(room).filter(({ text }) => /Only operators/.test(text)).length === 2,
      );
      assert.deepEqual(await answers(url, "guarded-1"), []);
    });

    test("guidance has a reaction from when the runtime has it until a step used it", TIMEOUT, async () => {
      const { person: olga, room, url } = await settle("olga");
      const params = { subject: "tea" };
      const session_id = "guided-1";
      await call(url, "/api/agents", {
        agent_id: "guided",
        moniker: "joke",
        session_id,
        params,
        options: { step_interval_ms: 50 },
      });
      await olga.ask(room, "!pause guided-1", /is paused/);
      const said = await olga.say(room, "!guide guided-1 penguins");
      await olga.seesSigns(room, said, ["⏳"]);
      await call(url, "/api/sessions/guided-1/resume", {});
      await olga.untilSo("the receipt", () => /^✅ step \d+$/.test(olga.signs(room, said).join()), room);
      await olga.ask(room, "!pause guided-1", /is paused/);
      const late = await olga.say(room, "!guide guided-1 whales");
      await olga.seesSigns(room, late, ["⏳"]);
      await call(url, "/api/sessions/guided-1/destroy", {});
      await olga.hears(room, /the session ended first/);
      await olga.seesSigns(room, late, []);
    });

    test("!inbox shows what sessions ask, to be answered there", TIMEOUT, async () => {
      const { person: olga, room, url } = await settle("olga");
      await script(url, "needy-1", [yesOrNo("Inbox?"), DONE]);
      const request = { agent_id: "limited", moniker: "joke", session_id: "limited-1", params: { subject: "tea" } };
      await call(url, "/api/agents", { ...request, options: { max_steps: 1 } });
      await olga.ask(room, "!watch limited-1", /`limited-1`/);
      await olga.hears(room, /`limited-1` is stopped/);
      const asked = await olga.ask(room, "!inbox", /needy-1\*\* \*\*asks:\*\* Inbox\?/);
      const reply = await olga.reply(room, asked.event_id, "Do it");
      await olga.seesSigns(room, reply, ["✅ step 1"]);
      assert.deepEqual(await answers(url, "needy-1"), ["yes"]);
      await olga.hears(room, /`limited-1`: stopped: it reached max_steps/);
    });

    test("!start starts a session and !fork another from one of its steps, both watched here", TIMEOUT, async () => {
      const { person: olga, room, url } = await settle("olga");
      await olga.ask(room, "!start", /Use `!start/);
      await olga.ask(room, "!start nonsense", /no moniker is named "nonsense"; there are .*\bchat\b/);
      await olga.ask(room, "!fork 1 more", /No session is watched here/);
      const frames = [{ ...FRAME, text: "black tea" }, { ...FRAME, text: "green tea" }, yesOrNo("More?"), DONE];
      const started = await olga.ask(room, `!start script frames=${JSON.stringify(frames)}`, /^Started `script-/);
      const session_id = /`(script-\w+)`/.exec(started.text)?.[1] ?? assert.fail();
      await olga.hears(room, new RegExp(`${session_id} #0\\*\\* black tea`));
      await olga.hears(room, new RegExp(`${session_id}\\*\\* \\*\\*asks:\\*\\* More`));
      const forked = await olga.ask(room, "!fork 0 about whales", /continues `script-\w+` from step 0/);
      const fork_id = /^`(script-\w+)`/.exec(forked.text)?.[1] ?? assert.fail();
      const step = await olga.hears(room, new RegExp(`${fork_id} #1\\*\\* green tea`));
      const question = await olga.hears(room, new RegExp(`${fork_id}\\*\\* \\*\\*asks:\\*\\* More`));
      assert.ok(
        olga.heard(room).indexOf(step) < olga.heard(room).indexOf(question),
        "the question comes after its step",
      );
      const { steps } = (await call(url, `/api/agent-steps?session_id=${fork_id}`)) as {
        steps: { guidance: unknown[] }[];
      };
      assert.match(JSON.stringify(steps.map(({ guidance }) => guidance)), /about whales/);
      await olga.ask(room, "!fork 1 about whales", /2 sessions are watched here/);
    });

    test("!cost tells what sessions cost", TIMEOUT, async () => {
      const { person: olga, room } = await settle("olga");
      await olga.ask(room, "!cost", /^\*\*\$\d+\.\d{4}\*\* since /);
      await olga.ask(room, "!cost model", /^\*\*\$/);
      await olga.ask(room, "!cost everything", /Use `!cost`/);
    });
  });

  describe("a bot that dies while people steer", { skip: skipWithoutHomeserver }, () => {
    const homeserver = sharedHomeserver();

    test("asks each question once, answers each once, and shows every receipt", { timeout: 120_000 }, async () => {
      await using server = await ServerProcess.start();
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ ...agentEnvironment(server.url), ...OPERATORS });
      const olga = await scene.person("olga");
      const room = await olga.openRoom([bot.user_id]);
      const rounds = 8;
      const frames = Array.from({ length: rounds }, (_, at) => yesOrNo(`Question ${at}?`));
      await script(server.url, "mortal-1", [...frames, DONE]);
      await olga.ask(room, "!watch mortal-1", /^Watching/);
      const questions: string[] = [];
      for (let at = 0; at < rounds; at++) {
        // At a different moment each time: before the question is shown, while it is, while the answer is in transit.
        const dying = (async () => {
          await wait(Math.random() * 150);
          await bot.kill();
          await bot.start();
        })();
        const asked = await olga.hears(room, new RegExp(`Question ${at}\\?`));
        questions.push(asked.event_id);
        await olga.react(room, asked.event_id, at % 2 === 0 ? "👍" : "👎");
        await dying;
      }
      await olga.hears(room, /`mortal-1` is done/);
      for (const [at, event_id] of questions.entries())
        await olga.seesSigns(room, event_id, ["👍", "👎", `✅ step ${at + 1}`]);
      const expected = Array.from({ length: rounds }, (_, at) => (at % 2 === 0 ? "yes" : "no"));
      assert.deepEqual(await answers(server.url, "mortal-1"), expected);
      const texts = olga.heard(room).filter(({ text }) => /Question \d/.test(text) && /asks/.test(text));
      assert.equal(texts.length, rounds);
      assert.ok(!olga.heard(room).some(({ text }) => /no longer asks|did not work/.test(text)));
    });
  });
}
