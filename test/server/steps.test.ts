import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { newId } from "../../src/domain/ids.ts";
import type { StepSpan } from "../../src/domain/step-span.ts";
import { listOf, pathOf, problemOf, type Query, read, SHAPES, wrongPaths } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();

describe("GET /api/agent-steps", () => {
  const agent_id = `stepper ${newId()}`;
  let session_id = "";
  before(async () => {
    const { api } = world();
    const options = { retry: { max_attempts: 1, backoff_ms: 0 } };
    const params = { to: 9, fail_at: 4, fail_times: 1 };
    ({ session_id } = await api.create("count", { agent_id, params, options }));
    await world().status(session_id, "error");
    assert.equal((await world().control(session_id, "resume")).outcome, "ok");
    await world().status(session_id, "done");
  });
  const steps = async (query: Query) =>
    read(await world().api.get("/api/agent-steps", query), 200, listOf("steps", SHAPES.step))["steps"] ?? [];
  /** Iterations; failed ones are marked. */
  const listed = async (query: Query) =>
    (await steps(query)).map(({ iteration, status }) => (status === "ok" ? iteration : `${iteration}!`));

  test("lists by iteration, and a row that failed beside the one that followed", TIMEOUT, async () => {
    assert.deepEqual(await listed({ session_id }), [0, 1, 2, 3, "4!", 4, 5, 6, 7, 8, 9]);
    assert.deepEqual(await listed({ agent_id }), [0, 1, 2, 3, "4!", 4, 5, 6, 7, 8, 9]);
    const failed = (await steps({ session_id, status: "error" }))[0];
    assert.match(failed?.error ?? "", /told to fail at 4/);
  });

  test("each step's next token is the next one's token, and its state is whole", TIMEOUT, async () => {
    const rows = await steps({ session_id, status: "ok" });
    for (const [index, row] of rows.entries()) {
      assert.deepEqual([row.iteration, row.text, row.state], [index, String(index), { n: index }]);
      if (index > 0) assert.equal(row.step_token, rows[index - 1]?.next_step_token);
    }
  });

  test("takes bounds, a status, a time and a page, alone and together", TIMEOUT, async () => {
    assert.deepEqual(await listed({ session_id, min_iteration: 7 }), [7, 8, 9]);
    assert.deepEqual(await listed({ session_id, max_iteration: 2 }), [0, 1, 2]);
    assert.deepEqual(await listed({ session_id, after_iteration: 7 }), [8, 9]);
    assert.deepEqual(await listed({ session_id, after_iteration: -1, max_iteration: 0 }), [0]);
    assert.deepEqual(await listed({ session_id, min_iteration: 5, max_iteration: 3 }), []);
    assert.deepEqual(await listed({ session_id, status: "error" }), ["4!"]);
    assert.deepEqual(await listed({ session_id, status: "ok", min_iteration: 3, max_iteration: 5 }), [3, 4, 5]);
    assert.deepEqual(await listed({ session_id, limit: 3, offset: 3 }), [3, "4!", 4]);
    assert.deepEqual(await listed({ session_id, status: "ok", limit: 2, offset: 4 }), [4, 5]);
    assert.deepEqual(await listed({ session_id, limit: 500, offset: 10 }), [9]);
    assert.deepEqual(await listed({ session_id, limit: 500, offset: 11 }), []);
    const fifth = (await steps({ session_id, status: "ok", min_iteration: 5, limit: 1 }))[0];
    const since = await steps({ session_id, since_created_at: fifth?.created_at ?? "" });
    assert.ok(since.length >= 5 && since.every(({ created_at }) => created_at >= (fifth?.created_at ?? "")));
    assert.deepEqual(await listed({ session_id, since_created_at: "2999-01-01T00:00:00.000Z" }), []);
  });

  test("names a session or an agent; where both are named the session counts", TIMEOUT, async () => {
    assert.deepEqual(wrongPaths(await world().api.get("/api/agent-steps")), ["session_id"]);
    assert.deepEqual(wrongPaths(await world().api.get("/api/agent-steps/latest")), ["session_id"]);
    assert.equal((await listed({ session_id, agent_id: "another" })).length, 11);
    assert.deepEqual(await listed({ session_id: "nobody" }), []);
  });

  test("spans tell when steps ran and what they called, without what they said", TIMEOUT, async () => {
    const { api } = world();
    const answer = await api.get("/api/step-spans", { session_id, min_iteration: 3, max_iteration: 4 });
    assert.equal(answer.status, 200);
    const { spans } = JSON.parse(answer.text) as { spans: StepSpan[] };
    assert.deepEqual(
      spans.map(({ iteration, status, attempts, guidance, rests, calls }) => [
        iteration,
        status,
        attempts,
        guidance,
        rests,
        calls,
      ]),
      [
        [3, "ok", 1, 0, null, []],
        [4, "error", 1, 0, null, []],
        [4, "ok", 2, 0, null, []],
      ],
    );
    assert.match(spans[1]?.error ?? "", /told to fail/);
    assert.ok(!answer.text.includes('"state"') && !answer.text.includes('"text"'));
    assert.deepEqual(wrongPaths(await api.get("/api/step-spans", {})), ["session_id"]);
    assert.deepEqual(wrongPaths(await api.get("/api/step-spans", { session_id, limit: 1001 })), ["limit"]);
  });

  test("latest answers the newest step of a session or an agent, and 404 where there is none", TIMEOUT, async () => {
    const { api } = world();
    for (const query of [{ session_id }, { agent_id }] as Query[])
      assert.equal(read(await api.get("/api/agent-steps/latest", query), 200, SHAPES.step).iteration, 9);
    const silent = await api.create("echo", { agent_id: `silent ${newId()}` });
    for (const query of [{ session_id: silent.session_id }, { agent_id: silent.agent_id }, { session_id: "nobody" }])
      problemOf(await api.get("/api/agent-steps/latest", query), 404);
  });
});

describe("a query of a list", () => {
  const LISTS: [path: string, base: Query][] = [
    ["/api/agents", {}],
    ["/api/sessions", {}],
    ["/api/actions", {}],
    ["/api/agent-steps", { session_id: "any" }],
    ["/api/agent-steps", { agent_id: "any" }],
    ["/api/conversations", {}],
  ];
  for (const [path, base] of LISTS) {
    const name = `${path}?${Object.keys(base).join()}`;
    test(`${name} takes a limit of 1 to 500 and an offset from 0 on`, TIMEOUT, async () => {
      const { api } = world();
      for (const limit of ["0", "501", "-1", "1.5", "ten", "", "1e9", "NaN", "Infinity", "0x10ffff"])
        assert.deepEqual(wrongPaths(await api.get(path, { ...base, limit })), ["limit"], limit);
      for (const offset of ["-1", "1.5", "many", "1e300", "9007199254740993"])
        assert.deepEqual(wrongPaths(await api.get(path, { ...base, offset })), ["offset"], offset);
      for (const good of [{ limit: 1 }, { limit: 500 }, { offset: 0 }, { limit: 500, offset: 1_000_000_000 }])
        assert.equal((await api.get(path, { ...base, ...good })).status, 200, JSON.stringify(good));
    });

    test(`${name} has an empty page at the largest offset`, TIMEOUT, async () => {
      const answer = await world().api.get(path, { ...base, limit: 500, offset: Number.MAX_SAFE_INTEGER });
      const { next, ...page } = JSON.parse(answer.text) as { next?: string | null };
      assert.deepEqual([answer.status, Object.values(page), next ?? null], [200, [[]], null]);
    });
  }

  test("gives 100 rows where no limit is named, and as many as were asked for", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("count", { params: { to: 600 } });
    await world().status(session_id, "done");
    const count = async (query: Query) =>
      read(await api.get("/api/agent-steps", { session_id, ...query }), 200, listOf("steps", SHAPES.step))["steps"]
        ?.length;
    assert.deepEqual([await count({}), await count({ limit: 1 }), await count({ limit: 500 })], [100, 1, 500]);
    assert.deepEqual(await count({ limit: 500, offset: 500 }), 101);
  });

  const WRONG: [path: string, field: string, values: string[]][] = [
    ["/api/sessions", "status", ["", "RUNNING", "nonsense", "constructor"]],
    ["/api/sessions", "agent_id", ["", "a".repeat(201), "a\u0000b"]],
    ["/api/actions", "processed", ["", "maybe", "2"]],
    ["/api/actions", "session_id", ["", "a".repeat(201), "line\nend"]],
    ["/api/agent-steps", "agent_id", ["", "tab\t"]],
    ["/api/agent-steps?session_id=x", "min_iteration", ["-2", "x", "1.5", "1e99"]],
    ["/api/agent-steps?session_id=x", "max_iteration", ["-2", "x", "9007199254740993"]],
    ["/api/agent-steps?session_id=x", "after_iteration", ["-2", "x"]],
    ["/api/agent-steps?session_id=x", "since_created_at", ["yesterday", "2024-13-01T00:00:00.000Z", ""]],
    ["/api/agent-steps?session_id=x", "status", ["done", ""]],
    ["/api/conversations", "status", ["closed", ""]],
    ["/api/search", "q", ["", "x".repeat(1001)]],
    ["/api/search?q=x", "limit", ["0", "501", "x"]],
  ];
  for (const [path, field, values] of WRONG) {
    test(`${path} answers 400 at ${field} for ${values.length} wrong values`, TIMEOUT, async () => {
      for (const value of values) {
        const separator = path.includes("?") ? "&" : "?";
        const answer = await world().api.get(`${path}${separator}${field}=${encodeURIComponent(value)}`);
        assert.deepEqual(wrongPaths(answer), [field], JSON.stringify(value));
      }
    });
  }

  test("a field given twice is answered 400, and one that is unknown is left aside", TIMEOUT, async () => {
    const { api } = world();
    assert.deepEqual(wrongPaths(await api.get("/api/sessions?agent_id=a&agent_id=b")), ["agent_id"]);
    for (const name of ["unknown", "__proto__", "constructor", "toString"])
      assert.equal((await api.get(`/api/sessions?${name}=1`)).status, 200, name);
    assert.equal((await api.get(`${pathOf("agents")}?limit=5&`)).status, 200);
  });
});
