import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Step } from "../../src/domain/step.ts";
import { ModelServer } from "../llm/model-server.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { echoing, modelEnvironment } from "./model-environment.ts";
import { RawClient } from "./raw-client.ts";

describe("the reset of the one chat", () => {
  let model: ModelServer;
  let world: World;
  before(async () => {
    model = await ModelServer.open();
    world = await World.of(await ServerProcess.start(modelEnvironment(model)));
  });
  beforeEach(() => model.clear());
  after(async () => {
    world.close();
    await world.server.finish();
    await model[Symbol.asyncDispose]();
  });
  const open = () => RawClient.open(world.server.url);
  const reset = async (): Promise<void> => {
    const answer = await fetch(`${world.server.url}/reset`, { method: "POST" });
    assert.equal(answer.status, 200);
    assert.deepEqual(await answer.json(), { status: "reset" });
  };

  test("makes a fresh session, tells every connection, and keeps the old history", TIMEOUT, async () => {
    model.otherwise(echoing);
    using one = await open();
    using other = await open();
    const old = one.session_id;
    await one.say("My name is Ada.");
    await reset();
    for (const client of [one, other]) {
      const status = await client.next();
      assert.ok(status.type === "status" && status.status === "ready", JSON.stringify(status));
      assert.notEqual(status.session_id, old);
      assert.match(status.session_id ?? "", /^default/);
    }
    assert.equal(one.session_id, other.session_id);
    using late = await open();
    assert.equal(late.session_id, one.session_id);
    await other.say("Who am I?");
    assert.ok(!model.calls.at(-1)?.prompt.includes("Ada"), "the new chat knows nothing of the old one");
    const steps: Step[] = await world.api.steps(old);
    assert.equal(steps.at(-1)?.text, "Answer to: My name is Ada.");
    const ended = await world.status(old, "stopped");
    assert.equal(ended.stop_reason, "destroyed");
  });

  test("takes a body of any type, and none", TIMEOUT, async () => {
    const bodies: [type: string | undefined, body: string | undefined][] = [
      [undefined, undefined],
      ["application/json", undefined],
      ["application/json", "{}"],
      ["application/json", "not JSON"],
      ["text/plain", ""],
      ["application/x-www-form-urlencoded", "a=1"],
      ["application/octet-stream", "x"],
    ];
    for (const [type, body] of bodies) {
      const response = await fetch(`${world.server.url}/reset`, {
        method: "POST",
        ...(body === undefined ? {} : { body: Buffer.from(body) }),
        ...(type === undefined ? {} : { headers: { "content-type": type } }),
      });
      assert.equal(response.status, 200, `${type} ${body}: ${await response.text()}`);
    }
  });

  test("fails the answer in flight, leaves the model, and lets those in line ask the new chat", TIMEOUT, async () => {
    using asking = await open();
    using waiting = await open();
    const old = asking.session_id;
    asking.ask("A long question.", { request_id: "long" });
    const call = await model.next();
    call.say("Once upon");
    assert.equal((await asking.next()).type, "event_text_chunk");
    waiting.ask("The next question.", { request_id: "next" });
    model.otherwise(echoing);
    await reset();
    await call.left;
    const frames = [await asking.next(), await asking.next()];
    const error = frames.find((frame) => frame.type === "error");
    assert.deepEqual([error?.code, error?.request_id], ["agent_error", "long"]);
    assert.match(error?.message ?? "", /reset/);
    assert.ok(frames.some((frame) => frame.type === "status"));
    const status = await waiting.next();
    assert.ok(status.type === "status" && status.session_id !== old);
    assert.equal((await waiting.answer({ request_id: "next" })).text, "Answer to: The next question.");
    assert.equal((await asking.say("Again.")).text, "Answer to: Again.");
    assert.equal((await world.api.steps(old)).filter(({ text }) => text?.startsWith("Once upon")).length, 0);
  });

  test("done many times at once leaves one chat for everybody", TIMEOUT, async () => {
    model.otherwise(echoing);
    using client = await open();
    await Promise.all(Array.from({ length: 5 }, reset));
    for (let times = 0; times < 5; times++) assert.equal((await client.next()).type, "status");
    using late = await open();
    assert.equal(late.session_id, client.session_id);
    assert.equal((await client.say("Still there?")).text, "Answer to: Still there?");
    const { sessions } = (await (await fetch(`${world.server.url}/api/agents/default/sessions`)).json()) as {
      sessions: { session_id: string; status: string }[];
    };
    for (const { session_id } of sessions)
      if (session_id !== client.session_id) await world.status(session_id, "stopped");
    assert.equal((await world.api.session(client.session_id)).status, "waiting");
  });

  test("is not needed after the chat was destroyed: the next question finds a new one", TIMEOUT, async () => {
    model.otherwise(echoing);
    using client = await open();
    await world.control(client.session_id, "destroy");
    await world.status(client.session_id, "stopped");
    assert.equal((await client.say("Anyone?")).text, "Answer to: Anyone?");
    using late = await open();
    assert.notEqual(late.session_id, client.session_id);
  });
});
