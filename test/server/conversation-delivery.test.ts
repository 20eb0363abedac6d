import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { newId } from "../../src/domain/ids.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { pathOf, read, SHAPES } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const posted = z.strictObject({ message: SHAPES.message, action_ids: z.array(z.string()) });

const say = async (conversation_id: string, text: string, more: JsonObject = {}) =>
  read(
    await world().api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "ann", text, ...more }),
    201,
    posted,
  );
const join = async (conversation_id: string, body: JsonObject) =>
  read(await world().api.post(pathOf("conversations", conversation_id, "participants"), body), 201, SHAPES.participant);
const echoIn = async (conversation_id: string) =>
  (await world().api.create("echo", { agent_id: `echo ${newId()}`, conversation_id })).session_id;
const agentMessages = async (conversation_id: string) =>
  (await world().api.messages(conversation_id)).filter(({ sender_type }) => sender_type === "agent");
/** Runs another session from creation to end. Anything that would happen by mistake has happened by then. */
const meanwhile = async () => {
  const { session_id } = await world().api.create("count", { params: { to: 20 } });
  await world().status(session_id, "done");
};

describe("an agent in a conversation", () => {
  test("is in it from its creation on, and says there what its steps say", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const frames: JsonObject[] = [
      { text: "one", data: { n: 1 }, notes: "a note" },
      { data: "nothing to say" },
      { text: "" },
      { text: "three" },
    ];
    const { agent_id, session_id } = await api.create("script", { conversation_id, params: { frames } });
    const [participant] = await api.all(
      pathOf("conversations", conversation_id, "participants"),
      "participants",
      SHAPES.participant,
    );
    assert.deepEqual(
      { agent_id: participant?.agent_id, session_id: participant?.session_id, left_at: participant?.left_at },
      { agent_id, session_id, left_at: null },
    );
    await world().status(session_id, "done");
    const steps = await api.steps(session_id);
    const messages = await api.messages(conversation_id);
    assert.deepEqual(
      messages.map(({ text, iteration, data, notes, step_token, next_step_token }) => ({
        text,
        iteration,
        data,
        notes,
        step_token,
        next_step_token,
      })),
      steps
        .filter(({ text }) => text !== null)
        .map(({ text, iteration, data, notes, step_token, next_step_token }) => ({
          text,
          iteration,
          data,
          notes,
          step_token,
          next_step_token,
        })),
    );
    assert.deepEqual(
      messages.map(({ text }) => text),
      ["one", "", "three"],
    );
    for (const message of messages)
      assert.deepEqual(
        [message.sender_type, message.agent_id, message.session_id, message.user_id],
        ["agent", agent_id, session_id, null],
      );
  });

  test("gets what a person says as guidance, once, and the person can follow its receipt", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const session_id = await echoIn(conversation_id);
    const { message, action_ids } = await say(conversation_id, "hello", { data: { mood: "good" } });
    assert.deepEqual(message.action_ids, action_ids);
    const [action] = await Promise.all(action_ids.map((id) => world().consumed(id)));
    assert.deepEqual(
      [action?.action_type, action?.session_id, action?.metadata],
      ["agent_input", session_id, { message_id: message.message_id, conversation_id }],
    );
    const [step, ...more] = await api.steps(session_id);
    const { message_id } = message;
    assert.deepEqual(step?.guidance, [
      { text: "hello", data: { mood: "good" }, user_id: "ann", message_id, conversation_id },
    ]);
    assert.deepEqual([step?.action_ids, more], [action_ids, []]);
    assert.deepEqual(
      (await agentMessages(conversation_id)).map(({ text }) => text),
      ["hello"],
    );
  });
});

describe("what a person says", () => {
  test("reaches every session that is in and can listen, and no other", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const [bound, joined, left, ended] = [
      await echoIn(conversation_id),
      (await api.create("echo")).session_id,
      (await api.create("echo")).session_id,
      await echoIn(conversation_id),
    ];
    await join(conversation_id, { session_id: joined });
    await join(conversation_id, { user_id: "bob" });
    const { participant_id } = await join(conversation_id, { session_id: left });
    await api.delete(pathOf("conversations", conversation_id, "participants", participant_id));
    await world().control(ended, "destroy");
    await world().status(ended, "stopped");
    const { action_ids } = await say(conversation_id, "hello");
    const actions = await Promise.all(action_ids.map((id) => world().consumed(id)));
    assert.deepEqual(actions.map(({ session_id }) => session_id).sort(), [bound, joined].sort());
    await meanwhile();
    for (const session_id of [left, ended]) assert.deepEqual(await api.steps(session_id), []);
  });

  test("reaches only those who are named in `to`, each once", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const [one, two, three] = [
      await echoIn(conversation_id),
      await echoIn(conversation_id),
      await echoIn(conversation_id),
    ];
    const { action_ids } = await say(conversation_id, "you two", { to: [one, two, one] });
    const actions = await Promise.all(action_ids.map((id) => world().consumed(id)));
    assert.deepEqual(
      actions.map(({ session_id }) => session_id),
      [one, two],
    );
    assert.deepEqual((await say(conversation_id, "nobody", { to: [] })).action_ids, []);
    await meanwhile();
    assert.deepEqual(await api.steps(three), []);
    assert.deepEqual((await api.messages(conversation_id)).length, 4, "two words of the person, two answers");
  });

  test("with mode now cuts the running step short", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const { session_id } = await api.create("count", { conversation_id, params: { to: 0, delay_ms: 1500 } });
    const { action_ids } = await say(conversation_id, "now", { mode: "now" });
    assert.equal((await world().consumed(action_ids[0] ?? "")).consumed_iteration, 0);
    assert.equal((await api.steps(session_id))[0]?.guidance.length, 1, "the step that ran before was not kept");
    assert.deepEqual(
      (await agentMessages(conversation_id)).map(({ text }) => text),
      ["0"],
    );
  });

  test("comes back as bounced where the session ends before it listens", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const session_id = await echoIn(conversation_id);
    await world().control(session_id, "pause");
    const { action_ids } = await say(conversation_id, "are you there?");
    await world().action(action_ids[0] ?? "", ({ receipt }) => receipt === "delivered");
    await world().control(session_id, "destroy");
    const { receipt, error } = await world().action(action_ids[0] ?? "", (action) => action.receipt === "bounced");
    assert.equal(receipt, "bounced");
    assert.match(error ?? "", /stopped/);
    assert.deepEqual(
      (await api.messages(conversation_id)).map(({ text }) => text),
      ["are you there?"],
    );
  });
});

describe("agents among themselves", () => {
  test("do not hear each other unless they ask to, so two that answer everything do not loop", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const sessions = [await echoIn(conversation_id), await echoIn(conversation_id)];
    const { action_ids } = await say(conversation_id, "echo!");
    await Promise.all(action_ids.map((id) => world().consumed(id)));
    await meanwhile();
    assert.equal((await agentMessages(conversation_id)).length, 2);
    for (const session_id of sessions) assert.equal((await api.steps(session_id)).length, 1);
  });

  test("that listen pass a person's message on four times, then it ends", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const [one, two] = [await echoIn(conversation_id), await echoIn(conversation_id)];
    for (const session_id of [one, two])
      assert.equal((await join(conversation_id, { session_id, role: "listener" })).role, "listener");
    await say(conversation_id, "ping", { to: [one] });
    await world().iteration(one, 2);
    await meanwhile();
    const said = await agentMessages(conversation_id);
    assert.deepEqual(
      said.map(({ session_id }) => session_id),
      [one, two, one, two, one],
    );
    assert.deepEqual(
      said.map(({ action_ids }) => action_ids.length),
      [1, 1, 1, 1, 0],
    );
    const heard = (await api.steps(two))[0]?.guidance[0] as JsonObject;
    const { message_id, agent_id } = said[0] ?? {};
    assert.deepEqual(heard, { text: "ping", agent_id, session_id: one, message_id, conversation_id, hops: 1 });
    for (const { action_ids } of said)
      for (const id of action_ids) assert.equal((await world().consumed(id)).outcome, "ok");

    await say(conversation_id, "again", { to: [two] });
    await world().iteration(two, 4);
    await meanwhile();
    assert.equal((await agentMessages(conversation_id)).length, 10, "each word of a person starts afresh");
  });

  test("a listener that left, or listens only elsewhere, receives nothing", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const [speaker, gone] = [await echoIn(conversation_id), await echoIn(conversation_id)];
    const elsewhere = await api.conversation();
    const stranger = await echoIn(elsewhere);
    await join(elsewhere, { session_id: stranger, role: "listener" });
    const { participant_id } = await join(conversation_id, { session_id: gone, role: "listener" });
    await api.delete(pathOf("conversations", conversation_id, "participants", participant_id));
    const { action_ids } = await say(conversation_id, "hello", { to: [speaker] });
    await world().consumed(action_ids[0] ?? "");
    await meanwhile();
    for (const session_id of [gone, stranger]) assert.deepEqual(await api.steps(session_id), []);
  });
});
