import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { reply } from "../llm/model-server.ts";
import { TIMEOUT } from "../runtime/runtime-fixture.ts";
import { calling, sharedAgentWorld } from "./agent-world.ts";

describe("a tool that people have to approve", () => {
  const shared = sharedAgentWorld();

  /** An agent that wants to drop a table and asks first. */
  async function asking(): Promise<string> {
    shared().model.will(calling(["test/drop", { table: "a" }]), reply("over"));
    const session_id = await shared().agent("Drop it.");
    const { about, choices } = await shared().question(session_id);
    assert.deepEqual(about, { kind: "tool", tool: "test/drop", args: { table: "a" } });
    assert.deepEqual(
      choices?.map(({ value }) => value),
      ["approve", "always", "deny"],
    );
    assert.deepEqual(shared().tools.calls, []);
    return session_id;
  }

  const result = (): string => shared().model.calls.at(-1)?.results.at(-1)?.text ?? "";

  for (const [name, answer, args] of [
    ["runs once it is approved", "approve", { table: "a" }],
    ["runs with the arguments that a person made of them", { choice: "approve", args: { table: "b" } }, { table: "b" }],
  ] as const)
    test(name, TIMEOUT, async () => {
      const session_id = await asking();
      await shared().answer(session_id, answer);
      await shared().world.untilStatus(session_id, "done");
      assert.deepEqual(shared().tools.calls, [["drop", args]]);
      assert.deepEqual(await shared().tokens(session_id), ["think/1", "act/1.1/test/drop", "think/2"]);
    });

  for (const [name, answer, reason] of [
    ["does not run where it is denied", "deny", /denied this call\.$/],
    ["is denied with a reason", { choice: "deny", reason: "not today" }, /not today/],
  ] as const)
    test(name, TIMEOUT, async () => {
      const session_id = await asking();
      await shared().answer(session_id, answer);
      await shared().world.untilStatus(session_id, "done");
      assert.deepEqual(shared().tools.calls, []);
      assert.match(result(), reason);
    });

  test("is denied by anything else that is said, with those words as the reason", TIMEOUT, async () => {
    const session_id = await asking();
    await shared().world.tell(session_id, "use the archive instead");
    await shared().world.untilStatus(session_id, "done");
    assert.deepEqual(shared().tools.calls, []);
    assert.match(result(), /use the archive instead/);
  });

  test("is not asked about again once it is approved for good", TIMEOUT, async () => {
    shared().model.will(calling(["test/drop", { n: 1 }]), calling(["test/drop", { n: 2 }]), reply("over"));
    const session_id = await shared().agent("Drop both.");
    await shared().question(session_id);
    await shared().answer(session_id, "always");
    await shared().world.untilStatus(session_id, "done");
    assert.deepEqual(shared().tools.calls, [
      ["drop", { n: 1 }],
      ["drop", { n: 2 }],
    ]);
  });

  test("stays asked about after a restart, and while others report", TIMEOUT, async () => {
    const session_id = await asking();
    await shared().restart();
    const { question_id } = await shared().question(session_id);
    const child = {
      session_id: "other",
      agent_id: "agent",
      status: "done",
      stop_reason: null,
      result: "r",
      error: null,
    };
    await shared().world.tell(session_id, { child });
    await shared().world.until(session_id, ({ question }) => question !== null && question.question_id !== question_id);
    await shared().answer(session_id, "approve");
    await shared().world.untilStatus(session_id, "done");
    assert.equal(shared().tools.calls.length, 1);
    assert.match(shared().model.calls.at(-1)?.prompt ?? "", /Session other of agent agent ended as done/);
  });
});

describe("a call that may have happened", () => {
  const shared = sharedAgentWorld();

  /** An agent in the middle of a call that does not end by itself. */
  async function midCall(tool: string): Promise<string> {
    const { model, tools } = shared();
    const begun = Promise.withResolvers<void>();
    tools.before.set(tool, () => {
      begun.resolve();
      return new Promise(() => {});
    });
    model.will(calling([`test/${tool}`, { sum: 7 }]), reply("over"));
    const session_id = await shared().agent("Do it.");
    await begun.promise;
    tools.before.clear();
    return session_id;
  }

  /** An agent whose payment was cut short. */
  async function inDoubt(): Promise<string> {
    const { world, tools } = shared();
    const session_id = await midCall("pay");
    await world.tell(session_id, "stop that", "now");
    const { about } = await shared().question(session_id);
    assert.deepEqual(about, { kind: "in_doubt", tool: "test/pay", args: { sum: 7 } });
    assert.equal(tools.calls.length, 1);
    return session_id;
  }

  for (const [answer, times, result] of [
    ["again", 2, /pay did/],
    ["skip", 1, /was not run again/],
    [{ choice: "result", result: { receipt: 12 } }, 1, /"receipt":12/],
  ] as const)
    test(`is ${JSON.stringify(answer)} as a person decides`, TIMEOUT, async () => {
      const session_id = await inDoubt();
      await shared().answer(session_id, answer);
      await shared().world.untilStatus(session_id, "done");
      assert.equal(shared().tools.calls.length, times);
      const last = shared().model.calls.at(-1);
      assert.match(last?.results.at(-1)?.text ?? "", result);
      assert.match(last?.prompt ?? "", /stop that/);
    });

  test("stays in doubt whatever else is said", TIMEOUT, async () => {
    const session_id = await inDoubt();
    const { question_id } = await shared().question(session_id);
    await shared().world.tell(session_id, "how is the weather?");
    await shared().world.until(session_id, ({ question }) => question !== null && question.question_id !== question_id);
    await shared().answer(session_id, "skip");
    await shared().world.untilStatus(session_id, "done");
    assert.equal(shared().tools.calls.length, 1);
    assert.match(shared().model.calls.at(-1)?.prompt ?? "", /how is the weather/);
  });

  test("is asked about after a restart, not made again", TIMEOUT, async () => {
    const { world, tools } = shared();
    const session_id = await midCall("pay");
    await shared().restart();
    const { about } = await shared().question(session_id);
    assert.deepEqual(about, { kind: "in_doubt", tool: "test/pay", args: { sum: 7 } });
    assert.equal(tools.calls.length, 1);
    await shared().answer(session_id, "skip");
    await world.untilStatus(session_id, "done");
  });

  test(
    "is marked before it is made, even if its server was unreachable when the model requested it",
    TIMEOUT,
    async () => {
      const { world, model, tools } = shared();
      tools.server.replace([]);
      model.will((call) => {
        tools.server.replace(tools.all);
        return calling(["test/pay", { sum: 9 }])(call);
      }, reply("over"));
      const session_id = await shared().agent("Pay.");
      await world.untilStatus(session_id, "done");
      assert.deepEqual(tools.calls, [["pay", { sum: 9 }]]);
      assert.deepEqual(await shared().tokens(session_id), [
        "think/1",
        "act/1.1/test/pay",
        "act/1.1/test/pay",
        "think/2",
      ]);
      assert.equal((await world.steps(session_id))[1]?.directives?.once, true);
    },
  );

  test("that only reads is made again without a question", TIMEOUT, async () => {
    const { world, tools } = shared();
    const session_id = await midCall("look");
    await world.tell(session_id, "hurry", "now");
    await world.untilStatus(session_id, "done");
    assert.equal(tools.calls.length, 2);
  });
});
