import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import type { Action } from "../../src/domain/action.ts";
import type { Message } from "../../src/domain/conversation.ts";
import { newId } from "../../src/domain/ids.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { pathOf, read, SHAPES } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();

const deltaShape = z.strictObject({
  session_id: z.string(),
  iteration: z.int().min(0),
  event_seq: z.int().min(0),
  text: z.string(),
});
const PAYLOADS: Record<string, z.ZodType> = {
  agent_state_update: SHAPES.session,
  agent_step: SHAPES.step,
  agent_step_delta: deltaShape,
  action_update: SHAPES.action,
  conversation_message: SHAPES.message,
  conversation_message_delta: deltaShape.extend({ conversation_id: z.string() }),
};
const messagesTold = (watcher: Watcher) => watcher.of<Message>("conversation_message");
const upTo = (last: number) => Array.from({ length: last + 1 }, (_, index) => index);

describe("subscribe and unsubscribe", () => {
  test("acknowledge what they understood", TIMEOUT, async () => {
    using watcher = await Watcher.connect(world().server.url);
    const topics = [
      { session_id: "s" },
      { session_id: "s", after_iteration: -1 },
      { session_id: "s", after_iteration: 10 },
      { conversation_id: "c" },
      { conversation_id: "c", after: "" },
      { conversation_id: "c", after: "some message" },
      { all: true },
      { summaries: true },
    ];
    for (const topic of topics) assert.deepEqual(await watcher.subscribe(topic), { ok: true });
    for (const topic of [{ session_id: "s" }, { conversation_id: "c" }, { all: true }]) {
      assert.deepEqual(await watcher.unsubscribe(topic), { ok: true });
      const again = await watcher.unsubscribe(topic);
      assert.deepEqual([again.ok, typeof again.error], [false, "string"]);
    }
  });

  test("answer an error for everything else, and the connection stays", TIMEOUT, async () => {
    using watcher = await Watcher.connect(world().server.url);
    const wrong: unknown[] = [
      undefined,
      null,
      5,
      "session",
      [],
      {},
      { session_id: "" },
      { session_id: 5 },
      { session_id: "x".repeat(201) },
      { session_id: "a\nb" },
      { session_id: "s", after_iteration: -2 },
      { session_id: "s", after_iteration: "1" },
      { session_id: "s", after_iteration: 1.5 },
      { session_id: "s", conversation_id: "c" },
      { conversation_id: null },
      { conversation_id: "c", after: 5 },
      { all: false },
      { all: "true" },
      { __proto__: null, constructor: "x" },
    ];
    for (const topic of wrong)
      for (const call of ["subscribe", "unsubscribe"] as const) {
        const { ok, error } = await watcher[call](topic);
        assert.deepEqual([ok, typeof error], [false, "string"], `${call} ${JSON.stringify(topic)}`);
      }
    for (const event of ["subscribe", "unsubscribe", "nonsense"])
      for (const payload of [[], [null], [{ all: true }, "not a function"], [1, 2, 3]])
        watcher.socket.emit(event, ...payload);
    assert.deepEqual(await watcher.subscribe({ session_id: "s" }), { ok: true });
    assert.ok(watcher.socket.connected);
  });

  test("of a thousand topics are kept, and one more is refused", TIMEOUT, async () => {
    using watcher = await Watcher.connect(world().server.url);
    const answers = await Promise.all(upTo(999).map((n) => watcher.subscribe({ session_id: `s${n}` })));
    assert.ok(answers.every(({ ok }) => ok));
    assert.equal((await watcher.subscribe({ session_id: "one more" })).ok, false);
    assert.equal((await watcher.unsubscribe({ session_id: "s5" })).ok, true);
    assert.equal((await watcher.subscribe({ session_id: "one more" })).ok, true);
  });

  test("after unsubscribe nothing more arrives", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("echo");
    using watcher = await Watcher.connect(world().server.url);
    await watcher.follow({ session_id });
    const sendGuidance = async (guidance: string) =>
      world().consumed((await world().control(session_id, "interrupt", { guidance })).action_id);
    await sendGuidance("heard");
    await watcher.until("the step", () => watcher.of<Step>("agent_step").length === 1);
    assert.deepEqual(await watcher.unsubscribe({ session_id }), { ok: true });
    const before = watcher.events.length;
    await sendGuidance("unheard");
    // A response arrives after everything sent earlier on the same connection.
    await watcher.subscribe({ session_id: "another" });
    assert.equal(watcher.events.length, before);
  });
});

describe("the events", () => {
  test("tell all that happens to a session in a conversation, each in its room", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const session_id = `joker ${newId()}`;
    using inSession = await Watcher.connect(world().server.url);
    using inConversation = await Watcher.connect(world().server.url);
    using everywhere = await Watcher.connect(world().server.url);
    await inSession.follow({ session_id, after_iteration: -1 });
    await inConversation.follow({ conversation_id, after: "" });
    await everywhere.follow({ all: true });
    await api.create("joke", {
      session_id,
      conversation_id,
      params: { subject: "tea" },
      options: { max_steps: 2, step_interval_ms: 50 },
    });
    const ended = (watcher: Watcher) =>
      watcher.until("the end", () =>
        watcher
          .of<Session>("agent_state_update")
          .some((row) => row.session_id === session_id && row.status === "stopped"),
      );
    await Promise.all([ended(inSession), ended(everywhere)]);
    await inConversation.until("two messages", () => messagesTold(inConversation).length === 2);

    for (const watcher of [inSession, inConversation, everywhere])
      for (const { event, payload } of watcher.events) {
        const parsed = PAYLOADS[event]?.safeParse(payload);
        assert.ok(parsed?.success, `${event} ${JSON.stringify(payload)} ${parsed?.error?.message}`);
      }
    const kinds = (watcher: Watcher) => [...new Set(watcher.events.map(({ event }) => event))].sort();
    assert.deepEqual(kinds(inSession), ["action_update", "agent_state_update", "agent_step", "agent_step_delta"]);
    assert.deepEqual(kinds(inConversation), ["conversation_message", "conversation_message_delta"]);
    assert.deepEqual(kinds(everywhere), Object.keys(PAYLOADS).sort());

    const steps = await api.steps(session_id);
    assert.deepEqual(inSession.of("agent_step"), steps);
    assert.deepEqual(messagesTold(inConversation), await api.messages(conversation_id));
    for (const { iteration, text } of steps)
      for (const [watcher, event] of [
        [inSession, "agent_step_delta"],
        [inConversation, "conversation_message_delta"],
      ] as const) {
        const deltas = watcher.of<z.infer<typeof deltaShape>>(event).filter((delta) => delta.iteration === iteration);
        assert.ok(deltas.length > 3, "the text came in parts");
        assert.deepEqual(
          deltas.map(({ event_seq }) => event_seq),
          upTo(deltas.length - 1),
        );
        assert.equal(deltas.map((delta) => delta.text).join(""), text);
      }
    const order = inSession.events.filter(({ event }) => event === "agent_step" || event === "agent_step_delta");
    const iterationsInOrder = order.map(({ payload }) => (payload as Step).iteration);
    assert.deepEqual(
      iterationsInOrder,
      iterationsInOrder.toSorted((a, b) => a - b),
      "a step follows its own deltas",
    );
    assert.deepEqual(inSession.of("agent_state_update").at(-1), await api.session(session_id));
  });
  test("tell every turn of an action's receipt", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("echo");
    using watcher = await Watcher.connect(world().server.url);
    await watcher.follow({ session_id });
    const answer = await api.post(pathOf("sessions", session_id, "interrupt"), { guidance: "hello" });
    const { action_id } = read(answer, 202, SHAPES.accepted);
    const turns = () =>
      watcher
        .of<Action>("action_update")
        .filter((action) => action.action_id === action_id)
        .map(({ receipt, outcome, consumed_iteration }) => [receipt, outcome, consumed_iteration]);
    await watcher.until("consumed", () => turns().some(([receipt]) => receipt === "consumed"));
    assert.deepEqual(turns(), [
      ["accepted", null, null],
      ["delivered", "ok", null],
      ["consumed", "ok", 0],
    ]);
  });

  test("of other sessions and conversations are not told", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    using watcher = await Watcher.connect(world().server.url);
    await watcher.follow({ session_id: `quiet ${newId()}`, after_iteration: -1 });
    await watcher.follow({ conversation_id, after: "" });
    const { session_id } = await api.create("joke", { options: { max_steps: 1 } });
    await world().status(session_id, "stopped");
    await api.post(pathOf("conversations", await api.conversation(), "messages"), {
      user_id: "ann",
      text: "elsewhere",
    });
    await watcher.subscribe({ session_id: "another" });
    assert.deepEqual(watcher.events, []);
  });
});
