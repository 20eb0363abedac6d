import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { newId } from "../../src/domain/ids.ts";
import { ENGINE } from "../store-home.ts";
import { pathOf, problemOf, read, SHAPES } from "./api.ts";
import { checkMetrics, promtoolFor } from "./promtool.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();

const healthShape = z.strictObject({
  status: z.literal("ok"),
  store: z.literal(ENGINE),
  live_sessions: z.int().min(0),
  queue_depth: z.int().min(0),
  queue_lag_ms: z.number().min(0),
  problems: z.array(z.string()).length(0),
  // The processes that share the store, if the engine allows that.
  ...(ENGINE === "postgres" && { workers: z.array(z.looseObject({ name: z.string().min(1) })).length(1) }),
});

describe("GET /health", () => {
  const health = async () => read(await world().api.get("/health"), 200, healthShape);

  test("counts live sessions, and an idle queue has no depth and no lag", TIMEOUT, async () => {
    const before = await health();
    const { session_id } = await world().api.create("echo");
    const done = await world().api.create("count", { params: { to: 0 } });
    await world().status(done.session_id, "done");
    const { queue_depth, queue_lag_ms, live_sessions } = await health();
    assert.deepEqual({ queue_depth, queue_lag_ms }, { queue_depth: 0, queue_lag_ms: 0 });
    assert.equal(live_sessions, before.live_sessions + 1);
    await world().control(session_id, "destroy");
    await world().status(session_id, "stopped");
    assert.equal((await health()).live_sessions, before.live_sessions);
  });
});

describe("GET /metrics", () => {
  /** The sample's value, or 0 if it does not exist yet. */
  const sample = (metrics: string, name: string): number => {
    const line = metrics.split("\n").find((one) => one.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1) ?? 0);
  };
  const metrics = async () => {
    const answer = await world().api.get("/metrics");
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-type") ?? "", /^text\/plain\b.*version=/);
    return answer.text;
  };

  test("is in Prometheus' format, with a help and a type for every name", TIMEOUT, async () => {
    const text = await metrics();
    const names = [
      "everstep_step_duration_seconds",
      "everstep_commit_duration_seconds",
      "everstep_tokens_total",
      "everstep_step_retries_total",
      "everstep_sessions",
      "everstep_queue_depth",
      "everstep_queue_lag_seconds",
      "process_resident_memory_bytes",
      "nodejs_eventloop_lag_seconds",
    ];
    for (const name of names) {
      assert.match(text, new RegExp(`^# HELP ${name} .+$`, "m"));
      assert.match(text, new RegExp(`^# TYPE ${name} (counter|gauge|histogram|summary)$`, "m"));
    }
    for (const line of text.split("\n").filter((one) => one !== "" && !one.startsWith("#")))
      assert.match(line, /^[a-zA-Z_:][\w:]*(\{[^}]*\})? (-?[\d.]+(e[+-]?\d+)?|NaN|[+-]Inf)( \d+)?$/);
  });

  test("passes promtool's check", TIMEOUT, async (t) => {
    const promtool = promtoolFor(t);
    if (promtool === null) return;
    const { session_id } = await world().api.create("count", { params: { to: 3 } });
    await world().status(session_id, "done");
    assert.deepEqual(await checkMetrics(promtool, await metrics()), { status: 0, output: "" });
    const { status, output } = await checkMetrics(promtool, "# TYPE steps_total gauge\nsteps_total 1\n");
    assert.notEqual(status, 0, "the check finds a wrong name");
    assert.match(output, /steps_total/);
  });

  test("changes with steps, failures, retries and sessions", TIMEOUT, async () => {
    const before = await metrics();
    const { api } = world();
    const { session_id } = await api.create("count", {
      params: { to: 9, fail_at: 3, fail_times: 2 },
      options: { retry: { max_attempts: 3, backoff_ms: 0 } },
    });
    await world().status(session_id, "done");
    const failing = await api.create("count", {
      params: { to: 9, fail_at: 0 },
      options: { retry: { max_attempts: 1, backoff_ms: 0 } },
    });
    await world().status(failing.session_id, "error");
    const after = await metrics();
    const grew = (name: string) => sample(after, name) - sample(before, name);
    assert.equal(grew('everstep_step_duration_seconds_count{status="ok"}'), 10);
    assert.equal(grew('everstep_step_duration_seconds_count{status="error"}'), 1);
    assert.equal(grew("everstep_step_retries_total"), 2);
    assert.ok(grew("everstep_commit_duration_seconds_count") >= 11);
    assert.equal(grew('everstep_sessions{status="done"}'), 1);
    assert.equal(grew('everstep_sessions{status="error"}'), 1);
    assert.equal(sample(after, "everstep_queue_depth"), 0);
  });
});

describe("GET /api/monikers", () => {
  const shape = z.strictObject({
    monikers: z.array(
      z.strictObject({
        name: z.string().min(1),
        kind: z.enum(["continuous", "finite", "reactive"]),
        description: z.string().min(1),
        params_schema: z.looseObject({ type: z.literal("object") }),
        version: z.string().regex(/^[0-9a-f]{12}$/),
      }),
    ),
  });

  test("lists the built-in ones with what they take", TIMEOUT, async () => {
    const { monikers } = read(await world().api.get("/api/monikers"), 200, shape);
    const kinds = Object.fromEntries(monikers.map(({ name, kind }) => [name, kind]));
    const expected = {
      joke: "continuous",
      summarize: "finite",
      research: "finite",
      echo: "reactive",
      count: "finite",
      script: "finite",
      schedule: "finite",
    };
    assert.deepEqual({ ...kinds, ...expected }, kinds);
    const count = monikers.find(({ name }) => name === "count")?.params_schema;
    assert.deepEqual(Object.keys(count?.["properties"] as object), [
      "to",
      "delay_ms",
      "payload_bytes",
      "fail_at",
      "fail_times",
    ]);
    assert.deepEqual(count?.["required"], ["to"]);
  });
});

describe("POST /reset", () => {
  test("answers that the default chat is a new one", TIMEOUT, async () => {
    const reset = async () => {
      const answer = await world().api.send("POST", "/reset");
      assert.deepEqual(read(answer, 200, z.strictObject({ status: z.string() })), { status: "reset" });
      return read(await world().api.get(pathOf("agents", "default")), 200, SHAPES.agent).latest;
    };
    const first = await reset();
    const second = await reset();
    for (const { session_id } of [first, second]) assert.match(session_id, /^default/);
    assert.notEqual(second.session_id, first.session_id);
    assert.deepEqual([second.status, second.iteration], ["waiting", -1]);
  });
});

describe("a page for people", () => {
  for (const path of ["/", "/docs"]) {
    test(`${path} is HTML`, TIMEOUT, async () => {
      const answer = await world().api.get(path);
      assert.equal(answer.status, 200);
      assert.match(answer.headers.get("content-type") ?? "", /^text\/html\b/);
      assert.match(answer.text, /^<!doctype html>/i);
    });
  }

  test("every script and style that /docs names is there", TIMEOUT, async () => {
    const { text } = await world().api.get("/docs");
    const sources = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, source]) => source ?? "");
    assert.ok(sources.length > 0);
    for (const source of sources) assert.equal((await world().api.get(source)).status, 200, source);
  });

  test("every answer has the headers that keep browsers safe", TIMEOUT, async () => {
    const paths = ["/", "/docs", "/api/agents", "/health", pathOf("sessions", newId()), "/nowhere"];
    for (const path of paths) {
      const { headers } = await world().api.get(path);
      const policy = headers.get("content-security-policy") ?? "";
      assert.match(policy, /default-src 'self'/, path);
      assert.doesNotMatch(policy.match(/script-src [^;]*/)?.[0] ?? "", /unsafe-inline|unsafe-eval|\*/);
      assert.equal(headers.get("x-content-type-options"), "nosniff", path);
      assert.match(headers.get("x-frame-options") ?? "", /SAMEORIGIN|DENY/, path);
      assert.match(headers.get("referrer-policy") ?? "", /no-referrer/, path);
      assert.equal(headers.get("x-powered-by"), null, path);
      assert.equal(headers.get("access-control-allow-origin"), null, path);
    }
  });

  test("a HEAD of them has no body", TIMEOUT, async () => {
    const { status, text } = await world().api.send("HEAD", "/");
    assert.deepEqual([status, text], [200, ""]);
    problemOf(await world().api.get("/favicon-that-is-not-there"), 404);
  });
});
