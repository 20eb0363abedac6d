import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MakeHome, sharedWorld, TIMEOUT, type World } from "../runtime-fixture.ts";

export function transcripts(makeHome: MakeHome): void {
  describe("sessions and what they say", () => {
    const world = sharedWorld(makeHome);

    test("two sessions of one agent stay apart", TIMEOUT, async () => {
      const [one, two] = [await world().create("held_reactive"), await world().create("held_reactive")];
      await world().tell(one, "for one");
      const step = await world().held.next(one);
      step.finish({ state: { whose: "one" }, text: "one", next_step: "one/1" });
      await world().untilStatus(one, "waiting");
      assert.equal(world().held.started(two), 0);
      await world().tell(two, "for two");
      const other = await world().held.next(two);
      assert.deepEqual(other.frame, { step: "0", state: {}, guidance: ["for two"] });
      other.finish({ state: { whose: "two" } });
      await world().untilIteration(two, 0);
      await world().do("agent_destroy", one);
      await world().untilStatus(one, "stopped");
      const { status, context, iteration } = await world().session(two);
      assert.deepEqual({ status, context, iteration }, { status: "waiting", context: { whose: "two" }, iteration: 0 });
      const stepsOfAgent = await world().store.listSteps({ agent_id: "agent", limit: 100, offset: 0 });
      assert.deepEqual(stepsOfAgent.map(({ session_id }) => session_id).sort(), [one, two].sort());
    });

    test("a session in a conversation has one message for each step with text, in order", TIMEOUT, async () => {
      const conversation_id = await world().conversation();
      const frames = [
        { text: "a" },
        { data: { silent: true } },
        { text: "b", data: { with: "data" } },
        {},
        { text: "c" },
      ];
      const session_id = await world().create("script", { conversation_id, params: { frames } as never });
      await world().untilStatus(session_id, "done");
      const messages = await transcript(world(), conversation_id);
      assert.deepEqual(
        messages.map(({ text, iteration, data }) => [text, iteration, data]),
        [
          ["a", 0, null],
          ["b", 2, { with: "data" }],
          ["c", 4, null],
        ],
      );
      for (const message of messages) {
        assert.deepEqual([message.sender_type, message.session_id, message.agent_id], ["agent", session_id, "agent"]);
      }
      const [member] = await world().store.listParticipants(conversation_id);
      assert.deepEqual([member?.session_id, member?.agent_id, member?.left_at], [session_id, "agent", null]);
    });

    test("a failed or interrupted attempt writes no message", TIMEOUT, async () => {
      const conversation_id = await world().conversation();
      const options = { retry: { max_attempts: 2, backoff_ms: 1 }, max_steps: 1 };
      const session_id = await world().create("held", { conversation_id, options });
      const failing = await world().held.next(session_id);
      failing.context.emit({ kind: "delta", text: "half a word" });
      failing.fail(new Error("once"));
      const cut = await world().held.next(session_id);
      await world().tell(session_id, "hurry", "now");
      const last = await world().held.next(session_id);
      cut.finish({ text: "cut" });
      last.finish({ text: "said" });
      await world().untilStatus(session_id, "stopped");
      assert.deepEqual(
        (await transcript(world(), conversation_id)).map(({ text }) => text),
        ["said"],
      );
    });

    test("many sessions in one conversation each have theirs, none twice, none missing", TIMEOUT, async () => {
      const conversation_id = await world().conversation();
      const sessions = await Promise.all(
        Array.from({ length: 20 }, () => world().create("count", { conversation_id, params: { to: 24 } })),
      );
      await Promise.all(sessions.map((id) => world().untilStatus(id, "done")));
      const messages = await transcript(world(), conversation_id);
      assert.equal(messages.length, 500);
      assert.equal(new Set(messages.map(({ message_id }) => message_id)).size, 500);
      for (const session_id of sessions) {
        const own = messages.filter((message) => message.session_id === session_id);
        assert.deepEqual(
          own.map(({ text }) => text),
          Array.from({ length: 25 }, (_, n) => String(n)),
        );
      }
    });
  });
}

const transcript = (world: World, conversation_id: string) =>
  world.store.listMessages({ conversation_id, limit: 1000, offset: 0 });
