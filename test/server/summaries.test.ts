import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { newId } from "../../src/domain/ids.ts";
import { SESSION_STATUSES } from "../../src/domain/session.ts";
import { type SessionSummary, sessionSummarySchema } from "../../src/domain/session-summary.ts";
import { stepSchema } from "../../src/domain/step.ts";
import { ENGINE } from "../store-home.ts";
import { pathOf, type Query, read, wrongPaths } from "./api.ts";
import { eventually, TIMEOUT } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const count = z.int().min(0);
const countsShape = z.strictObject(Object.fromEntries(SESSION_STATUSES.map((status) => [status, count])));
const summariesShape = z.strictObject({
  sessions: z.array(sessionSummarySchema.strict()),
  total: count,
  counts: countsShape,
  exact: z.boolean(),
  next: z.string().nullable(),
});

const summaries = async (query: Query | string) =>
  read(
    typeof query === "string"
      ? await world().api.get(`/api/session-summaries?${query}`)
      : await world().api.get("/api/session-summaries", query),
    200,
    summariesShape,
  );
const idsIn = ({ sessions }: { sessions: SessionSummary[] }) => sessions.map(({ session_id }) => session_id);

describe("GET /api/session-summaries", () => {
  test("finds sessions by status, agent, moniker, words and ids, with counts", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = `summarised ${newId()}`;
    const echo = await api.create("echo", { agent_id });
    const done = await api.create("count", { agent_id, params: { to: 3 } });
    await world().status(done.session_id, "done");
    const both = [done.session_id, echo.session_id];
    assert.deepEqual(idsIn(await summaries({ agent_id })), both);
    const { counts, total, sessions } = await summaries({ agent_id, status: "done" });
    assert.deepEqual([counts["done"], counts["waiting"], total], [1, 1, 1]);
    assert.deepEqual([sessions[0]?.text, sessions[0]?.iteration, sessions[0]?.question], ["3", 3, null]);
    assert.deepEqual(idsIn(await summaries({ q: agent_id.toUpperCase(), moniker: "echo" })), [echo.session_id]);
    const repeated = [...both.map((id) => `session_id=${id}`), "status=done", "status=waiting"].join("&");
    assert.deepEqual(idsIn(await summaries(repeated)), both);
    assert.equal((await summaries({ agent_id, limit: 1, offset: 1 })).sessions[0]?.session_id, echo.session_id);
  });

  test("finds those that a person should look at, and what they ask", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = `asking ${newId()}`;
    const chat = await api.create("chat", { agent_id });
    await api.create("echo", { agent_id });
    const limited = await api.create("joke", { agent_id, options: { max_steps: 1 } });
    await world().status(limited.session_id, "stopped");
    for (const guidance of ["write asked.md: 1", "write asked.md: 2"]) {
      const { text } = await api.post(pathOf("sessions", chat.session_id, "interrupt"), { guidance });
      await world().consumed((JSON.parse(text) as { action_id: string }).action_id);
    }
    const asking = await summaries({ agent_id, needs_person: true });
    assert.deepEqual(idsIn(asking), [limited.session_id, chat.session_id]);
    assert.match(asking.sessions[1]?.question?.text ?? "", /asked\.md already exists/);
    await world().control(limited.session_id, "destroy");
    assert.deepEqual(idsIn(await summaries({ agent_id, needs_person: true })), [chat.session_id]);
  });

  test("refuses what it does not understand", TIMEOUT, async () => {
    const wrong: Query[] = [
      { status: "asleep" },
      { limit: 0 },
      { needs_person: "perhaps" },
      { session_id: "" },
      { sort: "size" },
      { after: "nothing of ours" },
    ];
    for (const query of wrong)
      assert.deepEqual(wrongPaths(await world().api.get("/api/session-summaries", query)), Object.keys(query));
  });
});

describe("lists of sessions", () => {
  const paths = (agent_id: string): string[] => [
    `/api/session-summaries?agent_id=${encodeURIComponent(agent_id)}`,
    `/api/sessions?agent_id=${encodeURIComponent(agent_id)}`,
    `${pathOf("agents", agent_id, "sessions")}?`,
  ];
  const pageShape = z.object({ sessions: z.array(z.object({ session_id: z.string() })), next: z.string().nullable() });
  const readPage = async (path: string) => read(await world().api.get(path), 200, pageShape);

  test("go on after a page while sessions are created, by creation and by update", TIMEOUT, async () => {
    const { api } = world();
    const agent_id = `paged ${newId()}`;
    const made: string[] = [];
    for (let at = 0; at < 5; at++) made.push((await api.create("echo", { agent_id })).session_id);
    for (const id of made) await world().status(id, "waiting");
    await world().control(made[1] as string, "pause");
    for (const path of paths(agent_id))
      for (const sort of ["created_at", "updated_at"]) {
        const first = await readPage(`${path}&sort=${sort}&limit=2`);
        const late = (await api.create("echo", { agent_id })).session_id;
        await world().status(late, "waiting");
        const ids = first.sessions.map(({ session_id }) => session_id);
        for (let next = first.next; next !== null; ) {
          const page = await readPage(`${path}&sort=${sort}&limit=2&after=${next}`);
          ids.push(...page.sessions.map(({ session_id }) => session_id));
          next = page.next;
        }
        assert.ok(!ids.includes(late) && new Set(ids).size === ids.length);
        const old = ids.filter((id) => made.includes(id));
        assert.equal(old.length, made.length);
        if (sort === "created_at") assert.deepEqual(old, made.toReversed());
        else assert.equal(old[0], made[1]);
      }
  });

  test("refuse a cursor of a list in another order", TIMEOUT, async () => {
    const agent_id = `placed ${newId()}`;
    await world().api.create("echo", { agent_id });
    for (const path of paths(agent_id)) {
      const { next } = await readPage(`${path}&limit=1`);
      assert.deepEqual(wrongPaths(await world().api.get(`${path}&sort=updated_at&after=${next}`)), ["after"]);
    }
  });
});

describe("the topic {summaries: true}", () => {
  test("tells the newest summary of every session that changes", TIMEOUT, async () => {
    using watcher = await Watcher.connect(world().server.url);
    assert.deepEqual(await watcher.subscribe({ summaries: true }), { ok: true });
    const { session_id } = await world().api.create("count", { params: { to: 200 } });
    const last = await watcher.until("the end is told", (events) =>
      events
        .filter(({ event }) => event === "session_summaries")
        .flatMap(({ payload }) => (payload as { sessions: SessionSummary[] }).sessions)
        .find((row) => row.session_id === session_id && row.status === "done"),
    );
    assert.deepEqual(sessionSummarySchema.strict().parse(last).iteration, 200);
    const messages = watcher.events.filter(({ event }) => event === "session_summaries").length;
    assert.ok(messages < 100, `${messages} messages for 200 steps: changes are gathered`);
    assert.deepEqual(await watcher.unsubscribe({ summaries: true }), { ok: true });
  });
});

describe("steps without their states", () => {
  test("are the same rows but for the state", TIMEOUT, async () => {
    const { session_id } = await world().api.create("count", { params: { to: 3, payload_bytes: 1000 } });
    await world().status(session_id, "done");
    const steps = async (with_state?: boolean) => {
      const shape = with_state === false ? stepSchema.omit({ state: true }) : stepSchema;
      const answer = await world().api.get("/api/agent-steps", { session_id, with_state });
      return read(answer, 200, z.strictObject({ steps: z.array(shape.strict()) })).steps;
    };
    const whole = (await steps()) as z.infer<typeof stepSchema>[];
    assert.deepEqual(
      await steps(false),
      whole.map((step) => stepSchema.omit({ state: true }).parse(step)),
    );
    assert.equal(whole.length, 4);
    const slim = stepSchema.omit({ state: true, calls: true });
    const answer = await world().api.get("/api/agent-steps", { session_id, with_state: false, with_calls: false });
    assert.deepEqual(
      read(answer, 200, z.strictObject({ steps: z.array(slim.strict()) })).steps,
      whole.map((step) => slim.parse(step)),
    );
  });
});

describe("GET /api/system", () => {
  const shape = z.strictObject({
    store: z.literal(ENGINE),
    sessions: countsShape,
    queue_depth: count,
    queue_lag_ms: z.number().min(0),
    runtimes: z.array(
      z.strictObject({
        worker_id: z.string().min(1),
        pid: z.int(),
        started_at: z.iso.datetime(),
        running_steps: count,
        waiting_steps: count,
        max_running_steps: count,
        holds_sessions: z.boolean(),
      }),
    ),
    ...(ENGINE === "postgres" && { workers: z.array(z.looseObject({ name: z.string().min(1) })).length(1) }),
    process: z.strictObject({ node: z.string(), uptime_s: z.number(), memory_bytes: count }),
    samples: z.array(
      z.strictObject({ at: z.iso.datetime(), steps: count, errors: count, tokens: count, latency_ms: z.number() }),
    ),
  });

  test("tells the worker, what runs and what was done", TIMEOUT, async () => {
    const { api } = world();
    const running = await api.create("count", { params: { to: 5, delay_ms: 600_000 } });
    const { runtimes, samples, sessions } = await eventually("its step runs", async () => {
      const system = read(await api.get("/api/system"), 200, shape);
      return (system.runtimes[0]?.running_steps ?? 0) >= 1 && system;
    });
    assert.deepEqual([runtimes.length, runtimes[0]?.pid, runtimes[0]?.max_running_steps], [1, world().server.pid, 500]);
    assert.ok(samples.length <= 360, "half an hour at the most");
    assert.ok((sessions["running"] ?? 0) >= 1);
    await world().control(running.session_id, "destroy");
  });
});
