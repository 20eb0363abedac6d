import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { RoomMemberEvent } from "matrix-js-sdk";
import { TIMEOUT } from "../../server/server-fixture.ts";
import type { BotProcess } from "../bot-process.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import type { Person } from "../person.ts";
import { Scene } from "../scene.ts";
import { WrittenAgent } from "../stand-in.ts";

type Room = { agent: WrittenAgent; anna: Person; room: string; bot_id: string };

export function messagesSuite(): void {
  describe("questions and answers", { skip: skipWithoutHomeserver }, () => {
    const homeserver = sharedHomeserver();
    let shared: AsyncDisposableStack;
    let agentOfAll: WrittenAgent;
    let scene: Scene;
    let bot: BotProcess;
    before(async () => {
      shared = new AsyncDisposableStack();
      agentOfAll = shared.use(await WrittenAgent.open());
      scene = shared.use(new Scene(homeserver()));
      bot = await scene.bot({ AGENT_WS_URL: agentOfAll.url, AGENT_BASE_URL: "http://127.0.0.1:1" });
    });
    after(async () => {
      await bot.finish();
      await shared.disposeAsync();
    });

    /** Each test has its own person and room, and leaves no question unanswered. */
    async function open(): Promise<Room> {
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      return { agent: agentOfAll.anew(), anna, room, bot_id: bot.user_id };
    }

    test("questions while the agent is busy are said to be queued, and answered in order", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room, bot_id } = it;
      const boris = await scene.person("boris");
      await anna.client.invite(room, boris.user_id);
      await boris.client.joinRoom(room);
      const first = await anna.say(room, "one");
      const answering = await agent.question(0);
      await anna.ask(room, "two", /Queued: 1 question is ahead/);
      await boris.ask(room, "three", /Queued: 2 questions are ahead/);
      const last = await anna.say(room, "four");
      const context = await anna.ask(room, "!context", /busy with an answer, 3 questions waiting/);
      assert.ok(context.is_notice);
      answering.end("ONE");
      for (const [number, words] of ["TWO", "THREE", "FOUR"].entries()) (await agent.question(number + 1)).end(words);
      await anna.hears(room, /^FOUR$/);
      const answers = anna.heard(room).filter(({ sender, is_notice }) => sender === bot_id && !is_notice);
      assert.deepEqual(
        answers.map(({ text }) => text),
        ["ONE", "TWO", "THREE", "FOUR"],
      );
      assert.deepEqual([answers[0]?.reply_to, answers[3]?.reply_to], [first, last]);
      assert.deepEqual(agent.asked, ["one", "two", "three", "four"]);
      assert.equal(
        anna.heard(room).filter(({ text }) => text.startsWith("Queued")).length,
        2,
        "each person is told once",
      );
    });

    test("an answer that takes time is one message that grows, and its whole text at the end", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      await anna.say(room, "a tale");
      const answering = await agent.question(0);
      answering.say("Once upon");
      await anna.hears(room, /^Once upon …$/);
      answering.say(" a **time**");
      const grown = await anna.hears(room, /^Once upon a \*\*time\*\* …$/);
      answering.end(" there was.", 77);
      await anna.hears(room, /there was\.$/);
      assert.equal(grown.text, "Once upon a **time** there was.");
      assert.equal(grown.html, "<p>Once upon a <strong>time</strong> there was.</p>");
      assert.equal(anna.heard(room).filter(({ text }) => text.startsWith("Once")).length, 1);
      await anna.ask(room, "!context", /77 for the last answer, 77 in total/);
    });

    test("an answer is sent once, whole, to those who turned streaming off", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      await anna.ask(room, "!settings streaming off", /off/);
      await anna.say(room, "a tale");
      const answering = await agent.question(0);
      answering.say("Once upon");
      await new Promise((resolve) => setTimeout(resolve, 1500));
      answering.end(" a time.");
      assert.deepEqual((await anna.hears(room, /^Once/)).versions, ["Once upon a time."]);
    });

    test("an emoji that is cut in two between chunks arrives whole", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      await anna.say(room, "smile");
      const answering = await agent.question(0);
      const [high = "", low = ""] = "😀".split("");
      answering.say(`Smile ${high}`);
      await anna.hears(room, /^Smile/);
      answering.end(`${low}!`);
      await anna.hears(room, /^Smile 😀!$/);
    });

    test("a long answer comes in several messages that lose nothing", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      const paragraphs = Array.from(
        { length: 900 },
        (_, at) => `Paragraph ${at} "quoted" & <angled> Ёлка ${"x".repeat(80)}`,
      );
      const code = ["```ts", ...Array.from({ length: 900 }, (_, at) => `const value${at} = "${at}";`), "```"];
      await anna.say(room, "everything");
      (await agent.question(0)).end(`${paragraphs.join("\n\n")}\n\n${code.join("\n")}\n\nThe end.`);
      await anna.hears(room, /The end\.$/);
      const parts = anna.heard(room).filter(({ is_notice }) => !is_notice);
      assert.ok(parts.length > 8, String(parts.length));
      const whole = parts.map(({ text }) => text).join("\n\n");
      for (const line of [...paragraphs, ...code.slice(1, -1)]) assert.equal(whole.split(line).length, 2, line);
      for (const { text, html } of parts) {
        assert.equal((text.match(/^```/gm) ?? []).length % 2, 0, "no part leaves a block of code open");
        if (text.includes("const value")) assert.match(html ?? "", /<code class="language-ts">/);
      }
    });

    test("Markdown becomes HTML, and what could harm becomes text", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      await anna.say(room, "harm me");
      (await agent.question(0)).end(
        "# Title\n\n<script>alert(1)</script> <img src=x onerror=alert(1)> [link](javascript:alert(1)) **bold**",
      );
      const { html } = await anna.hears(room, /Title/);
      assert.match(html ?? "", /<h1>Title<\/h1>/);
      assert.match(html ?? "", /<strong>bold<\/strong>/);
      assert.match(html ?? "", /&lt;script&gt;alert\(1\)&lt;\/script&gt;/);
      assert.doesNotMatch(html ?? "", /<script|<img|href/);
    });

    test("what the agent says went wrong is told, and the next question is answered", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      await anna.say(room, "one");
      (await agent.question(0)).fail("auth: the key is wrong");
      await anna.hears(room, /could not answer: auth: the key is wrong/);
      await anna.say(room, "!save broken");
      (await agent.question(1)).end("I would rather not.");
      await anna.hears(room, /`broken` was not saved. The agent said: I would rather not/);
      await anna.ask(room, "!load", /no saved contexts yet/);
      await anna.say(room, "!reset");
      await anna.say(room, "!save broken");
      (await agent.question(2)).fail("no disk");
      await anna.hears(room, /was not saved.*no disk\n\nNothing was reset/s);
    });

    test("!stop cuts the answer short, and the next question is asked", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      await anna.say(room, "a tale");
      const answering = await agent.question(0);
      answering.say("Once upon");
      await anna.hears(room, /^Once upon/);
      await anna.say(room, "!stop");
      await anna.hears(room, /^Once upon\n\n\*\(stopped\)\*$/);
      await anna.say(room, "another");
      answering.end(" a time.");
      (await agent.question(1)).end("Another.");
      await anna.hears(room, /^Another\.$/);
      assert.ok(!anna.heard(room).some(({ text }) => text.includes("a time")));
    });

    test("a reply carries what it replies to, and a waiting question can be reworded", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      await anna.say(room, "one");
      const answering = await agent.question(0);
      const waiting = await anna.say(room, "tow");
      await anna.hears(room, /Queued/);
      await anna.client.sendMessage(room, {
        msgtype: "m.text",
        body: "* two",
        "m.new_content": { msgtype: "m.text", body: "two" },
        "m.relates_to": { rel_type: "m.replace", event_id: waiting },
      } as never);
      await anna.ask(room, "!context", /1 question waiting/);
      answering.end("ONE");
      (await agent.question(1)).end("TWO");
      const { event_id } = await anna.hears(room, /^TWO$/);
      await anna.client.sendMessage(room, {
        msgtype: "m.text",
        body: "Why?",
        "m.relates_to": { "m.in_reply_to": { event_id } },
      } as never);
      const why = await agent.question(2);
      assert.equal(why.text, "> TWO\n\nWhy?");
      why.end("Because.");
      await anna.hears(room, /^Because/);
      assert.deepEqual(agent.asked.slice(0, 2), ["one", "two"]);
    });

    test("it shows that it types while it works, and not after", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room, bot_id } = it;
      const typing = (isTyping: boolean) =>
        new Promise<void>((resolve) => {
          const listen = (_: unknown, member: { userId: string; typing: boolean }) => {
            if (member.userId !== bot_id || member.typing !== isTyping) return;
            anna.client.off(RoomMemberEvent.Typing, listen);
            resolve();
          };
          anna.client.on(RoomMemberEvent.Typing, listen);
        });
      const begins = typing(true);
      await anna.say(room, "think");
      const answering = await agent.question(0);
      await begins;
      const ends = typing(false);
      answering.end("Thought.");
      await ends;
    });

    test("notices, pictures and its own messages are not questions", TIMEOUT, async () => {
      const it = await open();
      const { agent, anna, room } = it;
      await anna.client.sendNotice(room, "I am a bot as well");
      await anna.client.sendMessage(room, { msgtype: "m.image", body: "cat.png", url: "mxc://localhost/x" } as never);
      await anna.hears(room, /only read text/);
      await anna.say(room, "one");
      (await agent.question(0)).end("ONE");
      await anna.hears(room, /^ONE$/);
      assert.deepEqual(agent.asked, ["one"]);
    });
  });
}
