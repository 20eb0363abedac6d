import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import type { LoopState } from "../../src/monikers/agent/loop-state.ts";
import { fromTurns } from "../../src/monikers/chat/memory.ts";
import { sharedLlmWorld, TIMEOUT } from "../llm/llm-fixture.ts";
import { ChatSession } from "./chat-session.ts";

const BUDGET = 24_000;
const sizeOf = ({ messages }: LoopState): number => messages.reduce((sum, { text }) => sum + text.length, 0);
/** A long message that differs from all others. */
const message = (at: number, length = 4000): string =>
  `Message ${at}: the word is tulip${at}. ${"Words follow. ".repeat(length / 14)}`;

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
    assert.match(last.state.messages.at(-2)?.text ?? "", /tulip11/);
  });

  test("survives a restart", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    await chat.say("The word is tulip.");
    await world().restartWithModel();
    const { messages } = (await chat.say("help")).state;
    assert.deepEqual(
      messages.map(({ role }) => role),
      ["user", "assistant", "user", "assistant"],
    );
    assert.equal(messages[0]?.text, "The word is tulip.");
  });

  test("takes over the state of the first release", TIMEOUT, async () => {
    const turns: JsonObject[] = [
      { role: "user", user_id: "ann", text: "The word is tulip." },
      { role: "agent", text: "I see." },
    ];
    const background = [{ path: "contexts/a.md", text: "background" }];
    const state = fromTurns({ turns, summary: "before", background, question: null });
    assert.deepEqual(fromTurns(state), state, "once is enough");
    const { messages, ...rest } = state;
    assert.deepEqual(messages, [
      { role: "user", name: "ann", text: "The word is tulip." },
      { role: "assistant", text: "I see.", tool_calls: [] },
    ]);
    assert.deepEqual(rest, { summary: "before", background, question: null, exchange_at: 2 });
    const parent = await ChatSession.open(world());
    await parent.say("help");
    const fork = await world().submit({
      action_type: "agent_fork",
      session_id: parent.session_id,
      payload: { iteration: 0, state, guidance: "help" },
    });
    const after = await world().untilIteration(fork.session_id, 1);
    assert.equal((after.context["messages"] as unknown[]).length, 4);
  });
});
