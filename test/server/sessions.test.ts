import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/domain/ids.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import { JSON_BODY, listOf, pathOf, problemOf, read, SHAPES, wrongPaths } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const fresh = (name: string): string => `${name} ${newId()}`;
/** A session that has steps to run for as long as a test may take. */
const ENDLESS = { params: { to: 1_000_000, delay_ms: 20 } };

describe("GET /api/sessions", () => {
  test("lists newest first, by status and by agent", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = fresh("lister");
    const done = await api.create("count", { agent_id, params: { to: 0 } });
    const waiting = await api.create("echo", { agent_id });
    await world().status(done.session_id, "done");
    const ids = async (query: Record<string, string>) =>
      (await api.all("/api/sessions", "sessions", SHAPES.session, query)).map(({ session_id }) => session_id);
    assert.deepEqual(await ids({ agent_id }), [waiting.session_id, done.session_id]);
    assert.deepEqual(await ids({ agent_id, status: "done" }), [done.session_id]);
    assert.deepEqual(await ids({ agent_id, status: "paused" }), []);
    const all = await ids({});
    assert.ok(all.indexOf(waiting.session_id) < all.indexOf(done.session_id));
  });

  test("of an unknown id answers 404", TIMEOUT, async () => {
    problemOf(await world().api.get(pathOf("sessions", "nothing")), 404);
  });
});

describe("a control of a session", () => {
  test("pauses, resumes and destroys, each with a reason or without a body at all", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("count", ENDLESS);
    const paused = await world().control(session_id, "pause", { reason: "lunch" });
    assert.deepEqual([paused.outcome, paused.payload], ["ok", { reason: "lunch" }]);
    assert.equal((await api.session(session_id)).status, "paused");
    const resume = read(await api.send("POST", pathOf("sessions", session_id, "resume")), 202, SHAPES.accepted);
    assert.equal((await world().settled(resume.action_id)).outcome, "ok");
    assert.equal((await api.session(session_id)).status, "running");
    const destroy = await api.send("POST", pathOf("sessions", session_id, "destroy"), "", JSON_BODY);
    assert.equal((await world().settled(read(destroy, 202, SHAPES.accepted).action_id)).outcome, "ok");
    const { stop_reason } = await world().status(session_id, "stopped");
    assert.equal(stop_reason, "destroyed");
  });

  test("keeps who asked and the caller's metadata with the action", TIMEOUT, async () => {
    const { api } = world();
    const metadata = { surface: "a test", user_id: "somebody else" };
    const sender = { user_id: "ann", metadata };
    const { session_id, action_id } = await api.create("echo", sender);
    assert.deepEqual((await api.action(action_id)).metadata, { surface: "a test", user_id: "ann" });
    const bodies = { pause: { reason: "lunch" }, resume: {}, interrupt: { guidance: "hello" } };
    for (const [verb, body] of Object.entries(bodies)) {
      const action = await world().control(session_id, verb, { ...body, ...sender });
      assert.deepEqual([action.metadata, action.payload], [{ surface: "a test", user_id: "ann" }, body], verb);
    }
    const paused = await world().control(session_id, "pause", { reason: "tea", metadata: { surface: "a test" } });
    assert.deepEqual(paused.metadata, { surface: "a test" });
    assert.deepEqual((await api.session(session_id)).pause_reason, { kind: "person", reason: "tea" });
    await world().control(session_id, "resume", {});
    await world().control(session_id, "pause", sender);
    assert.deepEqual((await api.session(session_id)).pause_reason, { kind: "person", user_id: "ann" });
  });

  test("that forks keeps who asked with the fork and with its guidance", TIMEOUT, async () => {
    const { api } = world();
    const parent = await api.create("count", { params: { to: 1 } });
    await world().status(parent.session_id, "done");
    const body = { iteration: 0, guidance: "go on", user_id: "ann" };
    const answer = await api.post(pathOf("sessions", parent.session_id, "fork"), body);
    const { session_id } = read(answer, 202, SHAPES.accepted);
    const actions = await api.all("/api/actions", "actions", SHAPES.action, { session_id });
    assert.deepEqual(
      actions.map(({ action_type, metadata }) => [action_type, metadata]),
      [
        ["agent_interrupt", { user_id: "ann" }],
        ["agent_fork", { user_id: "ann" }],
      ],
    );
  });

  test("answers with the action and the session", TIMEOUT, async () => {
    const { api } = world();
    const { session_id, agent_id } = await api.create("echo");
    const accepted = read(await api.post(pathOf("sessions", session_id, "pause")), 202, SHAPES.accepted);
    assert.deepEqual({ agent_id: accepted.agent_id, session_id: accepted.session_id }, { agent_id, session_id });
    assert.equal((await api.action(accepted.action_id)).session_id, session_id);
  });

  test("that cannot be applied is accepted, and ends as rejected with the reason", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("count", { params: { to: 0 } });
    await world().status(session_id, "done");
    for (const verb of ["pause", "resume", "destroy"]) {
      const { outcome, error, processed } = await world().control(session_id, verb);
      assert.deepEqual({ processed, outcome }, { processed: true, outcome: "rejected" }, verb);
      assert.match(error ?? "", /done/);
    }
    const action = await world().control(session_id, "interrupt", { guidance: "too late" });
    assert.deepEqual([action.outcome, action.receipt], ["rejected", "bounced"]);
  });

  test("on an unknown session or agent answers 404 and enqueues nothing", TIMEOUT, async () => {
    const { api } = world();
    const id = fresh("nobody");
    const bodies = { pause: {}, resume: {}, destroy: {}, interrupt: { guidance: "hello" } };
    for (const [verb, body] of Object.entries(bodies)) {
      problemOf(await api.post(pathOf("sessions", id, verb), body), 404);
      problemOf(await api.post(pathOf("agents", id, verb), body), 404);
    }
    problemOf(await api.post(pathOf("sessions", id, "fork"), { iteration: 0 }), 404);
    for (const query of [{ session_id: id }, { agent_id: id }])
      assert.deepEqual(await api.all("/api/actions", "actions", SHAPES.action, query), []);
  });

  test("with a body that is wrong answers 400 at its field", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("echo");
    const wrong = async (verb: string, body: object) =>
      wrongPaths(await api.post(pathOf("sessions", session_id, verb), body as never));
    assert.deepEqual(await wrong("pause", { reason: 5 }), ["reason"]);
    assert.deepEqual(await wrong("pause", { user_id: 5, metadata: "x" }), ["user_id", "metadata"]);
    assert.deepEqual(await wrong("interrupt", {}), ["guidance"]);
    assert.deepEqual(await wrong("interrupt", { guidance: "x", mode: "later" }), ["mode"]);
    assert.deepEqual(await wrong("fork", {}), ["iteration"]);
    assert.deepEqual(await wrong("fork", { iteration: -1 }), ["iteration"]);
    assert.deepEqual(await wrong("fork", { iteration: 0 }), ["iteration"], "there is no step yet");
    assert.deepEqual(await wrong("fork", { iteration: 0, session_id: "" }), ["session_id"]);
  });

  test("by agent_id means the agent's latest session", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = fresh("latest");
    const first = await api.create("echo", { agent_id });
    const second = await api.create("echo", { agent_id });
    const control = async (verb: string, body = {}) => {
      const answer = read(await api.post(pathOf("agents", agent_id, verb), body), 202, SHAPES.accepted);
      assert.equal(answer.session_id, second.session_id);
      return world().settled(answer.action_id);
    };
    assert.equal((await control("pause")).outcome, "ok");
    assert.equal((await control("resume")).outcome, "ok");
    const action = await control("interrupt", { guidance: "hello" });
    assert.equal((await world().consumed(action.action_id)).consumed_iteration, 0);
    assert.equal((await control("destroy")).outcome, "ok");
    await world().status(second.session_id, "stopped");
    assert.equal((await api.session(first.session_id)).status, "waiting");
  });
});

describe("POST /api/sessions/:session_id/interrupt", () => {
  const KINDS: JsonValue[] = [null, "", "text", 5, false, [1, "two"], { deep: { er: [] } }, { guidance: "named" }];
  for (const guidance of KINDS) {
    test(`brings ${JSON.stringify(guidance)} into exactly one step, as it was sent`, TIMEOUT, async () => {
      const { api } = world();
      const { session_id } = await api.create("echo");
      const action = await world().control(session_id, "interrupt", { guidance });
      const { consumed_iteration, receipt } = await world().consumed(action.action_id);
      assert.deepEqual({ consumed_iteration, receipt }, { consumed_iteration: 0, receipt: "consumed" });
      const [step, ...more] = await api.steps(session_id);
      assert.deepEqual([step?.guidance, step?.action_ids, more], [[guidance], [action.action_id], []]);
    });
  }

  test("with mode now cuts the running step short, and the step runs again with the guidance", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("count", { params: { to: 0, delay_ms: 1500 } });
    const action = await world().control(session_id, "interrupt", { guidance: "hurry", mode: "now" });
    assert.deepEqual([action.outcome, action.receipt], ["ok", "delivered"]);
    assert.equal((await world().consumed(action.action_id)).consumed_iteration, 0);
    const steps = await api.steps(session_id);
    assert.deepEqual(
      steps.map(({ iteration, guidance }) => ({ iteration, guidance })),
      [{ iteration: 0, guidance: ["hurry"] }],
    );
  });
});

describe("POST /api/sessions/:session_id/fork", () => {
  test("starts a session with its parent's history up to the iteration, then its own", TIMEOUT, async () => {
    const { api } = world();
    const parent = await api.create("count", { params: { to: 4 } });
    await world().status(parent.session_id, "done");
    const path = pathOf("sessions", parent.session_id, "fork");
    const session_id = fresh("fork");
    const body = { iteration: 2, session_id, guidance: { why: "another way" } };
    const fork = read(await api.post(path, body), 202, SHAPES.accepted);
    assert.deepEqual([fork.session_id, fork.agent_id], [session_id, parent.agent_id]);
    const session = await world().status(session_id, "done");
    assert.deepEqual([session.parent_session_id, session.iteration], [parent.session_id, 4]);
    const steps = await api.steps(session_id);
    assert.deepEqual(
      steps.map((step) => [step.iteration, step.session_id, step.text]),
      [0, 1, 2, 3, 4].map((n) => [n, n <= 2 ? parent.session_id : session_id, String(n)]),
    );
    assert.deepEqual(steps[3]?.guidance, [{ why: "another way" }]);
    assert.deepEqual(read(await api.post(path, body), 202, SHAPES.accepted), fork, "the same call again");
    assert.equal((await api.steps(session_id)).length, 5);
    problemOf(
      await api.post(pathOf("sessions", session_id, "fork"), { iteration: 3, session_id: parent.session_id }),
      409,
    );
    assert.deepEqual(wrongPaths(await api.post(path, { iteration: 5 })), ["iteration"]);
  });
});

describe("POST /api/actions", () => {
  test("takes every kind of action, with metadata and urgency", TIMEOUT, async () => {
    const { api } = world();
    const submit = async (request: Record<string, unknown>) =>
      read(await api.post("/api/actions", request as never), 202, SHAPES.accepted);
    const agent_id = fresh("actor");
    const { session_id } = await submit({ action_type: "agent_create", agent_id, payload: { moniker: "echo" } });
    const answer = await submit({
      action_type: "agent_input",
      session_id,
      payload: { text: "hello" },
      metadata: { from: "a test" },
      urgency: 7,
    });
    const { metadata, urgency, payload } = await world().consumed(answer.action_id);
    assert.deepEqual(
      { metadata, urgency, payload },
      { metadata: { from: "a test" }, urgency: 7, payload: { text: "hello" } },
    );
    const types = ["agent_pause", "agent_resume"];
    for (const action_type of types) await world().settled((await submit({ action_type, agent_id })).action_id);
    const guided = await submit({ action_type: "agent_interrupt", session_id, payload: { guidance: "again" } });
    await world().consumed(guided.action_id);
    const fork = await submit({ action_type: "agent_fork", session_id, payload: { iteration: 0 } });
    assert.notEqual(fork.session_id, session_id);
    const destroy = await submit({ action_type: "agent_destroy", session_id, agent_id });
    assert.equal((await world().settled(destroy.action_id)).outcome, "ok");
    const listed = await api.all("/api/actions", "actions", SHAPES.action, { session_id });
    assert.deepEqual(
      listed.map(({ action_type }) => action_type),
      ["agent_destroy", "agent_interrupt", "agent_resume", "agent_pause", "agent_input", "agent_create"],
    );
    const everyone = listOf("actions", SHAPES.action);
    const open = read(await api.get("/api/actions", { session_id, processed: false }), 200, everyone)["actions"];
    const closed = read(await api.get("/api/actions", { session_id, processed: true }), 200, everyone)["actions"];
    assert.deepEqual([open, closed], [[], listed]);
    const byAgent = await api.all("/api/actions", "actions", SHAPES.action, { agent_id });
    assert.deepEqual(byAgent.length, listed.length + 1);
  });

  test("answers 400 for unknown types and 404 for unknown targets", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("echo");
    const wrong = async (body: object) => wrongPaths(await api.post("/api/actions", body as never));
    assert.deepEqual(await wrong({}), ["action_type"]);
    assert.deepEqual(await wrong({ action_type: "agent_dance", session_id }), ["action_type"]);
    assert.deepEqual(await wrong({ action_type: "agent_create", payload: { moniker: "echo" } }), ["agent_id"]);
    assert.deepEqual(await wrong({ action_type: "agent_interrupt", session_id, payload: {} }), ["guidance"]);
    assert.deepEqual(await wrong({ action_type: "agent_pause", session_id, payload: [] }), ["payload"]);
    assert.deepEqual(await wrong({ action_type: "agent_pause", session_id, metadata: "x" }), ["metadata"]);
    problemOf(await api.post("/api/actions", { action_type: "agent_pause", session_id: fresh("nobody") }), 404);
    problemOf(await api.post("/api/actions", { action_type: "agent_pause", session_id, agent_id: "not its own" }), 404);
    problemOf(await api.post("/api/actions", { action_type: "agent_pause" }), 404);
    problemOf(await api.get(pathOf("actions", "nothing")), 404);
  });
});
