import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/domain/ids.ts";
import { listOf, pathOf, problemOf, read, SHAPES, wrongPaths } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const fresh = (name: string): string => `${name} ${newId()}`;

describe("POST /api/agents", () => {
  test("answers 202 with the ids, and the session can be read at once", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = fresh("counter");
    const accepted = read(
      await api.post("/api/agents", { agent_id, moniker: "count", params: { to: 2 }, options: { max_steps: 9 } }),
      202,
      SHAPES.accepted,
    );
    assert.equal(accepted.agent_id, agent_id);
    const session = await api.session(accepted.session_id);
    assert.deepEqual(
      { agent_id: session.agent_id, moniker: session.moniker, params: session.params },
      { agent_id, moniker: "count", params: { to: 2 } },
    );
    assert.deepEqual(session.options, { stop_on_done: true, max_steps: 9 });
    const action = await world().settled(accepted.action_id);
    assert.deepEqual(
      { type: action.action_type, outcome: action.outcome, session_id: action.session_id, error: action.error },
      { type: "agent_create", outcome: "ok", session_id: accepted.session_id, error: null },
    );
    const done = await world().status(accepted.session_id, "done");
    assert.deepEqual({ iteration: done.iteration, result: done.result }, { iteration: 2, result: "2" });
  });

  test("keeps the urgency of the request in its action", TIMEOUT, async () => {
    const { api } = world();
    const { action_id } = await api.create("count", { params: { to: 0 }, urgency: 9 });
    assert.equal((await api.action(action_id)).urgency, 9);
  });

  test("the same session_id again answers the same ids and does nothing twice", TIMEOUT, async () => {
    const { api } = world();
    const session_id = fresh("mine");
    const body = { agent_id: fresh("agent"), moniker: "count", session_id, params: { to: 1 } };
    const first = read(await api.post("/api/agents", body), 202, SHAPES.accepted);
    await world().status(session_id, "done");
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.post("/api/agents", body)));
    for (const answer of answers) assert.deepEqual(read(answer, 202, SHAPES.accepted), first);
    const steps = await api.steps(session_id);
    assert.deepEqual(
      steps.map(({ iteration }) => iteration),
      [0, 1],
    );
    const { actions } = read(await api.get("/api/actions", { session_id }), 200, listOf("actions", SHAPES.action));
    assert.equal(actions?.length, 1);
  });

  test("ten calls at once with one new session_id make one session", TIMEOUT, async () => {
    const { api } = world();
    const session_id = fresh("raced");
    const body = { agent_id: fresh("agent"), moniker: "echo", session_id };
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.post("/api/agents", body)));
    const ids = answers.map((answer) => read(answer, 202, SHAPES.accepted).action_id);
    assert.equal(new Set(ids).size, 1);
    assert.equal(read(await api.get(pathOf("agents", body.agent_id)), 200, SHAPES.agent).session_count, 1);
  });

  test("the same session_id with another agent or moniker is answered 409", TIMEOUT, async () => {
    const { api } = world();
    const { agent_id, session_id } = await api.create("echo", { session_id: fresh("taken") });
    problemOf(await api.post("/api/agents", { agent_id: "another", moniker: "echo", session_id }), 409);
    problemOf(await api.post("/api/agents", { agent_id, moniker: "joke", session_id }), 409);
    const session = await api.session(session_id);
    assert.deepEqual([session.agent_id, session.moniker], [agent_id, "echo"]);
  });

  const REFUSED: [what: string, body: Record<string, unknown>, path: string][] = [
    ["no agent_id", { moniker: "echo" }, "agent_id"],
    ["an empty agent_id", { agent_id: "", moniker: "echo" }, "agent_id"],
    ["an agent_id that is a number", { agent_id: 5, moniker: "echo" }, "agent_id"],
    ["an agent_id of 201 characters", { agent_id: "a".repeat(201), moniker: "echo" }, "agent_id"],
    ["an agent_id with a line end", { agent_id: "a\nb", moniker: "echo" }, "agent_id"],
    ["half of a surrogate pair", { agent_id: "a\ud800", moniker: "echo" }, "agent_id"],
    ["no moniker and no configuration", { agent_id: "unconfigured" }, "moniker"],
    ["an unknown moniker", { agent_id: "a", moniker: "nonsense" }, "moniker"],
    ["a moniker named like a property of objects", { agent_id: "a", moniker: "constructor" }, "moniker"],
    ["a moniker that is a list", { agent_id: "a", moniker: ["echo"] }, "moniker"],
    ["params that are a string", { agent_id: "a", moniker: "echo", params: "x" }, "params"],
    ["a parameter of a wrong type", { agent_id: "a", moniker: "count", params: { to: "3" } }, "params.to"],
    ["a parameter that is missing", { agent_id: "a", moniker: "count" }, "params.to"],
    ["max_steps of 0", { agent_id: "a", moniker: "echo", options: { max_steps: 0 } }, "options.max_steps"],
    [
      "a retry without attempts",
      { agent_id: "a", moniker: "echo", options: { retry: { max_attempts: 0 } } },
      "options.retry.max_attempts",
    ],
    ["an urgency of 10", { agent_id: "a", moniker: "echo", urgency: 10 }, "urgency"],
    ["a negative urgency", { agent_id: "a", moniker: "echo", urgency: -1 }, "urgency"],
    ["an urgency between two", { agent_id: "a", moniker: "echo", urgency: 1.5 }, "urgency"],
    ["a session_id of null", { agent_id: "a", moniker: "echo", session_id: null }, "session_id"],
  ];
  for (const [what, body, path] of REFUSED) {
    test(`answers 400 at ${path} for ${what}`, TIMEOUT, async () => {
      const answer = await world().api.send("POST", "/api/agents", JSON.stringify(body), {
        "content-type": "application/json",
      });
      assert.deepEqual(wrongPaths(answer), [path]);
    });
  }

  test("answers 404 for a conversation that is unknown, and makes no session", TIMEOUT, async () => {
    const { api } = world();
    const session_id = fresh("homeless");
    const body = { agent_id: "a", moniker: "echo", session_id, conversation_id: fresh("nowhere") };
    problemOf(await api.post("/api/agents", body), 404);
    problemOf(await api.get(pathOf("sessions", session_id)), 404);
  });
});

describe("an agent", () => {
  test("is listed by id with its number of sessions and its latest session", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = fresh("twice");
    const first = await api.create("count", { agent_id, params: { to: 0 } });
    await world().status(first.session_id, "done");
    const latest = await api.create("echo", { agent_id });
    await world().status(latest.session_id, "waiting");
    const agent = read(await api.get(pathOf("agents", agent_id)), 200, SHAPES.agent);
    assert.deepEqual(
      { agent_id: agent.agent_id, moniker: agent.moniker, count: agent.session_count, latest: agent.latest.session_id },
      { agent_id, moniker: "echo", count: 2, latest: latest.session_id },
    );
    const agents = await api.all("/api/agents", "agents", SHAPES.agent);
    assert.deepEqual(
      agents.find((one) => one.agent_id === agent_id),
      agent,
    );
    const ids = agents.map((one) => one.agent_id);
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    );
  });

  test("that is unknown is answered 404, and so are its sessions and its configuration", TIMEOUT, async () => {
    const { api } = world();
    for (const rest of [[], ["sessions"], ["config"]])
      problemOf(await api.get(pathOf("agents", "nobody", ...rest)), 404);
  });

  test("has its sessions listed newest first, in pages", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = fresh("busy");
    const made: string[] = [];
    for (let count = 0; count < 5; count += 1) made.unshift((await api.create("echo", { agent_id })).session_id);
    const path = pathOf("agents", agent_id, "sessions");
    const page = async (limit: number, offset: number) =>
      read(await api.get(path, { limit, offset }), 200, listOf("sessions", SHAPES.session))["sessions"]?.map(
        ({ session_id }) => session_id,
      );
    assert.deepEqual(await page(500, 0), made);
    assert.deepEqual(await page(2, 1), made.slice(1, 3));
    assert.deepEqual(await page(2, 4), made.slice(4));
    assert.deepEqual(await page(2, 5), []);
  });
});

describe("an agent's configuration", () => {
  test("is what it was set to, whole, and gives later sessions what their requests leave out", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = fresh("configured");
    const path = pathOf("agents", agent_id, "config");
    const config = { moniker: "joke", params: { subject: "tea" }, options: { max_steps: 1 }, description: "tells" };
    const put = read(await api.put(path, config), 200, SHAPES.config);
    const { updated_at: _, ...rest } = put;
    assert.deepEqual(rest, { agent_id, ...config });
    assert.deepEqual(read(await api.get(path), 200, SHAPES.config), put);

    const plain = read(await api.post("/api/agents", { agent_id }), 202, SHAPES.accepted);
    const plainSession = await world().status(plain.session_id, "stopped");
    assert.deepEqual(
      [plainSession.moniker, plainSession.stop_reason, plainSession.params],
      ["joke", "max_steps", { subject: "tea" }],
    );
    assert.match(plainSession.result as string, /tea/);

    const own = await api.create("joke", { agent_id, params: { subject: "coffee" }, options: { max_steps: 2 } });
    const session = await api.session(own.session_id);
    assert.deepEqual([session.params, session.options.max_steps], [{ subject: "coffee" }, 2]);

    const other = await api.create("count", { agent_id, params: { to: 0 } });
    assert.deepEqual((await api.session(other.session_id)).params, { to: 0 }, "another moniker gets no foreign params");
  });

  test("changed meanwhile does not turn a repeated call into a different one", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = fresh("changing");
    const body = { agent_id, session_id: fresh("mine") };
    await api.put(pathOf("agents", agent_id, "config"), { moniker: "joke" });
    const first = read(await api.post("/api/agents", body), 202, SHAPES.accepted);
    await api.put(pathOf("agents", agent_id, "config"), { moniker: "echo" });
    assert.deepEqual(read(await api.post("/api/agents", body), 202, SHAPES.accepted), first);
    assert.equal((await api.session(first.session_id)).moniker, "joke");
    problemOf(await api.post("/api/agents", { ...body, moniker: "echo" }), 409);
  });

  test("set again replaces the old one as a whole", TIMEOUT, async () => {
    const { api } = world();
    const path = pathOf("agents", fresh("reset"), "config");
    await api.put(path, { moniker: "joke", params: { subject: "tea" }, description: "old" });
    const { params, description, moniker } = read(await api.put(path, { moniker: "echo" }), 200, SHAPES.config);
    assert.deepEqual({ params, description, moniker }, { params: {}, description: null, moniker: "echo" });
  });

  test("answers 400 for an unknown moniker, a missing one, and invalid options", TIMEOUT, async () => {
    const { api } = world();
    const path = pathOf("agents", fresh("refused"), "config");
    assert.deepEqual(wrongPaths(await api.put(path, { moniker: "nonsense" })), ["moniker"]);
    assert.deepEqual(wrongPaths(await api.put(path, {})), ["moniker"]);
    assert.deepEqual(wrongPaths(await api.put(path, { moniker: "echo", options: { max_tokens: -1 } })), [
      "options.max_tokens",
    ]);
    problemOf(await api.get(path), 404);
  });
});
