import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { failing, reply } from "../llm/model-server.ts";
import { TIMEOUT } from "../runtime/runtime-fixture.ts";
import { calling, sharedAgentWorld } from "./agent-world.ts";

describe("an agent", () => {
  const shared = sharedAgentWorld();

  test(
    "makes every model call and every tool call a step of its own, and ends with the model's words",
    TIMEOUT,
    async () => {
      const { world, model, tools } = shared();
      model.will(
        calling(["test/look", { at: "a" }], ["test/look", { at: "b" }]),
        calling(["files/write", { path: "made.md", text: "made by the agent" }]),
        reply("It is done."),
      );
      const session_id = await shared().agent("Look, then write.");
      const session = await world.untilStatus(session_id, "done");
      assert.equal(session.result, "It is done.");
      assert.deepEqual(await shared().tokens(session_id), [
        "think/1",
        "act/1.1/test/look",
        "act/1.2/test/look",
        "think/2",
        "act/2.1/files/write",
        "think/3",
      ]);
      assert.deepEqual(tools.calls, [
        ["look", { at: "a" }],
        ["look", { at: "b" }],
      ]);
      const last = model.calls.at(-1);
      assert.match(last?.said("user") ?? "", /Look, then write\./);
      assert.deepEqual(
        last?.results.map(({ text }) => text),
        ['look did {"at":"a"}', 'look did {"at":"b"}', "Wrote made.md."],
      );
      const steps = await world.steps(session_id);
      assert.deepEqual(
        steps.map(({ calls }) => calls.map(({ kind, name }) => `${kind} ${name}`)),
        [
          ["model openai/test"],
          ["tool test/look"],
          ["tool test/look"],
          ["model openai/test"],
          ["tool files/write"],
          ["model openai/test"],
        ],
      );
    },
  );

  test("hears what is said between two calls, once, after their results", TIMEOUT, async () => {
    const { world, model, tools } = shared();
    const begun = Promise.withResolvers<void>();
    const delivery = Promise.withResolvers<void>();
    tools.before.set("look", async () => {
      begun.resolve();
      await delivery.promise;
    });
    model.will(calling(["test/look", {}], ["test/look", {}]), reply("heard"));
    const session_id = await shared().agent("Look twice.");
    await begun.promise;
    const action_id = await world.tell(session_id, { text: "mind the gap", user_id: "ann" });
    await world.delivered(action_id);
    delivery.resolve();
    await world.untilStatus(session_id, "done");
    const { receipt, consumed_iteration } = await world.ended(action_id);
    assert.deepEqual([receipt, consumed_iteration], ["consumed", 2]);
    const { messages, results } = model.calls.at(-1) ?? assert.fail("the model was asked");
    assert.equal(results.length, 2);
    const said = messages.filter(({ text }) => text.includes("mind the gap"));
    assert.equal(said.length, 1);
    assert.match(said[0]?.text ?? "", /ann/);
    assert.equal(messages.at(-1), said[0]);
  });

  test("is cut short while it thinks by urgent guidance, and keeps what its tools did", TIMEOUT, async () => {
    const { world, model, tools } = shared();
    model.will(calling(["test/pay", { sum: 1 }]));
    const session_id = await shared().agent("Pay.");
    await model.next();
    const thinking = await model.next();
    await world.tell(session_id, "be quick", "now");
    await thinking.left;
    await (await model.next()).reply("paid");
    await world.untilStatus(session_id, "done");
    assert.deepEqual(tools.calls, [["pay", { sum: 1 }]]);
    assert.match(model.calls.at(-1)?.prompt ?? "", /be quick/);
    assert.deepEqual(await shared().tokens(session_id), ["think/1", "act/1.1/test/pay", "think/2"]);
  });

  test("is told about an unknown tool and about one that fails, and goes on", TIMEOUT, async () => {
    const { world, model } = shared();
    model.will(calling(["no/such", {}]), calling(["files/read", { path: "../../etc/passwd" }]), reply("so be it"));
    const session_id = await shared().agent("Try.");
    await world.untilStatus(session_id, "done");
    const [unknown, refused] = model.calls.at(-1)?.results ?? [];
    assert.match(unknown?.text ?? "", /There is no tool named no\/such/);
    assert.match(refused?.text ?? "", /Refused/);
  });

  test("is not told of tools that it may not use", TIMEOUT, async () => {
    const { world, model } = shared();
    model.will(calling(["test/pay", {}]), reply("I see"));
    const session_id = await world.create("agent", {
      params: { task: "Pay.", tools: ["files/*", "test/*"] },
      options: { tools: { deny: ["test/pay"] } },
    });
    await world.untilStatus(session_id, "done");
    const offered = model.calls[0]?.tools.map(({ name }) => name) ?? [];
    assert.ok(offered.some((name) => name.includes("look")) && offered.some((name) => name.includes("read")));
    assert.ok(!offered.some((name) => name.includes("pay") || name.includes("people")));
    assert.deepEqual(shared().tools.calls, []);
  });

  test("fails with the provider's error if that is permanent, and goes on after a resume", TIMEOUT, async () => {
    const { world, model } = shared();
    model.will(failing(400, { error: { message: "no such thing" } }));
    const session_id = await shared().agent("Ask.");
    const failed = await world.untilStatus(session_id, "error");
    assert.match(failed.last_error ?? "", /no such thing/);
    model.will(reply("now it goes"));
    await world.do("agent_resume", session_id);
    assert.equal((await world.untilStatus(session_id, "done")).result, "now it goes");
  });

  test("waits for sessions that it started, and is told how they ended", TIMEOUT, async () => {
    const { world, model } = shared();
    model.will(
      calling(["agents/start", { moniker: "count", params: { to: 2 } }]),
      calling(["agents/wait", {}]),
      reply("they are through"),
    );
    const session_id = await shared().agent("Delegate.");
    await world.untilStatus(session_id, "done");
    const children = await world.store.summarizeSessions({ spawned_by: session_id, limit: 10, offset: 0 });
    assert.deepEqual(
      children.sessions.map(({ status }) => status),
      ["done"],
    );
    const prompt = model.calls.at(-1)?.prompt ?? "";
    const results =
      model.calls
        .at(-1)
        ?.results.map(({ text }) => text)
        .join("\n") ?? "";
    assert.match(`${prompt}\n${results}`, /ended as done|No session that you started is still running/);
  });

  test("waits for a time, and asks people", TIMEOUT, async () => {
    const { world, model } = shared();
    model.will(
      calling(["time/wait", { seconds: 0.2 }]),
      calling(["people/ask", { question: "Red or blue?", choices: ["red", "blue"] }]),
      reply("blue it is"),
    );
    const session_id = await shared().agent("Ask after a while.");
    const question = await shared().question(session_id);
    assert.equal(question.text, "Red or blue?");
    await shared().answer(session_id, "blue");
    await world.untilStatus(session_id, "done");
    const results = model.calls.at(-1)?.results.map(({ text }) => text) ?? [];
    assert.match(results[0] ?? "", /It is 20/);
    assert.equal(results[1], "blue");
  });
});
