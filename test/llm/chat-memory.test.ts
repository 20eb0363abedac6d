import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ChatSession, type ChatState } from "./chat-session.ts";
import { sharedLlmWorld, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import type { ModelCall } from "./model-call.ts";

const BUDGET = 24_000;
const sizeOf = ({ turns }: ChatState): number => turns.reduce((sum, { text }) => sum + text.length, 0);
const isSummary = (call: ModelCall): boolean => call.said("system").startsWith("Summarise the text below");
/** A long message that can be told from others. */
const message = (at: number, length = 4000): string =>
  `Message ${at}: the word is tulip${at}. ${"Words follow. ".repeat(length / 14)}`;

describe("the memory of a chat with a model", () => {
  const server = sharedModelServer();
  const world = sharedLlmWorld(server);

  test(
    "stays within its budget: the oldest turns become a summary that the model words and is told",
    TIMEOUT,
    async () => {
      server().otherwise((call) =>
        call.reply(isSummary(call) ? "They spoke of tulip0." : '{"tool": "reply", "text": "Yes."}'),
      );
      const chat = await ChatSession.open(world());
      let last = await chat.say(message(0));
      for (let at = 1; at < 12; at++) {
        last = await chat.say(message(at));
        assert.ok(sizeOf(last.state) <= BUDGET, `${sizeOf(last.state)}`);
      }
      const summaries = server().calls.filter(isSummary);
      assert.ok(summaries.length >= 1);
      assert.match(summaries[0]?.said("user") ?? "", /"text":"Message 0: .*\{"from":"agent","text":"Yes\."/s);
      assert.match(
        summaries[1]?.said("user") ?? "",
        /^\{"from":"summary","text":"They spoke of tulip0\."\}/,
        "a later summary builds on the one before",
      );
      assert.equal(last.state.summary, "They spoke of tulip0.");
      await chat.say("What did we speak of?");
      const prompt =
        server()
          .calls.findLast((call) => !isSummary(call))
          ?.said("user") ?? "";
      assert.match(prompt, /\{"from":"summary","text":"They spoke of tulip0\."\}/);
      assert.ok(!prompt.includes("Message 0:"), "the oldest turns are there no more");
      assert.match(prompt, /tulip11/);
    },
  );

  test(
    "forgets nothing where the summary cannot be had: the answer is given, and a later step sums up",
    TIMEOUT,
    async () => {
      server().otherwise((call) =>
        isSummary(call) ? call.fail(400) : call.reply('{"tool": "reply", "text": "Yes."}'),
      );
      const chat = await ChatSession.open(world());
      for (let at = 0; at < 6; at++) await chat.say(message(at));
      const over = await chat.say(message(6));
      assert.deepEqual([over.text, over.deltas], ["Yes.", "Yes."]);
      assert.ok(sizeOf(over.state) > BUDGET, "nothing was dropped");
      assert.equal(over.state.turns.length, 14);
      server().otherwise((call) => call.reply(isSummary(call) ? "A summary." : '{"tool": "reply", "text": "Yes."}'));
      const { state } = await chat.say("Go on.");
      assert.equal(state.summary, "A summary.");
      assert.ok(sizeOf(state) <= BUDGET);
      assert.match(server().calls.at(-1)?.said("user") ?? "", /"text":"Message 0: /);
    },
  );

  test("keeps the beginning of a message that is larger than the budget itself", TIMEOUT, async () => {
    server().otherwise((call) =>
      call.reply(isSummary(call) ? "A summary." : JSON.stringify({ tool: "reply", text: message(2, 60_000) })),
    );
    const chat = await ChatSession.open(world());
    const said = await chat.say(message(1, 60_000));
    assert.equal(said.text, message(2, 60_000), "the answer itself is whole");
    assert.ok(sizeOf(said.state) <= BUDGET + 1, `${sizeOf(said.state)}`);
    assert.match(said.state.turns.at(-1)?.text ?? "", /^Message 2/);
  });
});

describe("the memory of a chat without a model", () => {
  const world = sharedLlmWorld(null);

  test("stays within its budget too: the oldest turns become an extract of themselves", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    let last = await chat.say(message(0));
    for (let at = 1; at < 12; at++) {
      last = await chat.say(message(at));
      assert.ok(sizeOf(last.state) <= BUDGET, `${sizeOf(last.state)}`);
    }
    assert.match(last.state.summary, /Message \d+: the word is tulip/);
    assert.ok(last.state.summary.length <= 8000);
    assert.match(last.state.turns.at(-2)?.text ?? "", /tulip11/);
  });

  test("survives a restart", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    await chat.say("The word is tulip.");
    await world().restartWithModel();
    const { turns } = (await chat.say("help")).state;
    assert.deepEqual(
      turns.map(({ role }) => role),
      ["user", "agent", "user", "agent"],
    );
    assert.equal(turns[0]?.text, "The word is tulip.");
  });
});
