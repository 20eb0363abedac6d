import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { ClientError, EverstepClient, type Schemas, type SessionEvent } from "../../src/client/client.ts";
import { SseParser } from "../../src/client/sse-parser.ts";
import type { Action } from "../../src/domain/action.ts";
import { EverstepError } from "../../src/domain/errors.ts";
import { newId } from "../../src/domain/ids.ts";
import type { Session } from "../../src/domain/session.ts";
import type { SessionSummary } from "../../src/domain/session-summary.ts";
import type { Step } from "../../src/domain/step.ts";
import { assertTypes, codeBlocks, writeCode } from "../docs/page-code.ts";
import { eventually, sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { LossyProxy } from "./lossy-proxy.ts";

const TOKEN = "sesame-of-the-client";
const server = sharedServer({ EVERSTEP_TOKEN: TOKEN });
const clientOf = (url: string, options = {}) => new EverstepClient({ url, token: TOKEN, ...options });
const client = () => clientOf(server().url);
const upTo = (last: number) => Array.from({ length: last + 1 }, (_, index) => index);

const rowsAreTheDomains = (rows: Schemas): [Session, Step, Action, SessionSummary] => [
  rows.Session,
  rows.Step,
  rows.Action,
  rows.SessionSummary,
];
const create = async (moniker: string, params = {}, options = {}) =>
  (await client().create({ agent_id: `client-${newId()}`, moniker, params, options })).session_id;
const actionsOf = async (session_id: string) =>
  (await client().request("GET /api/actions", { query: { session_id } })).actions;
const refusedWith = (code: string, status: number | null) => (error: unknown) => {
  assert.ok(error instanceof ClientError && error instanceof EverstepError, String(error));
  assert.deepEqual([error.code, error.status], [code, status]);
  assert.ok(error.next.length > 0 && error.what.length > 0);
  return true;
};

describe("the client's calls", () => {
  test("are typed by the document, and rows are those of the domain", TIMEOUT, async () => {
    assert.equal(typeof rowsAreTheDomains, "function");
    const session_id = await create("echo");
    const session = await client().request("GET /api/sessions/{session_id}", { path: { session_id } });
    assert.equal(session.moniker, "echo");
    const { sessions, total } = await client().request("GET /api/session-summaries", {
      query: { session_id: [session_id, "nobody"], status: ["waiting", "running"] },
    });
    assert.deepEqual([sessions.map((row) => row.session_id), total], [[session_id], 1]);
  });

  test("take ids of any characters, and addresses with a path before the API's", TIMEOUT, async () => {
    const session_id = `a/b?c #%25 "ü" ${newId()}`;
    await client().create({ agent_id: "strange", moniker: "echo", session_id });
    assert.equal((await client().guide(session_id, "hello")).session_id, session_id);
    assert.equal(clientOf("https://example.org/everstep/").url, "https://example.org/everstep");
  });

  test("are refused with a code, the server's words, the fields and a next move", TIMEOUT, async () => {
    const nobody = client().request("GET /api/sessions/{session_id}", { path: { session_id: "nobody" } });
    await assert.rejects(nobody, refusedWith("request_refused", 404));
    await assert.rejects(client().create({ agent_id: "x", moniker: "count", params: { to: "many" } }), (error) => {
      refusedWith("request_refused", 400)(error);
      return (error as ClientError).errors.some(({ path }) => path === "params.to");
    });
    const stranger = new EverstepClient({ url: server().url, token: "wrong" });
    await assert.rejects(stranger.request("GET /api/agents"), refusedWith("request_refused", 401));
    const nowhere = new EverstepClient({ url: "http://127.0.0.1:9" });
    await assert.rejects(nowhere.request("GET /api/agents"), refusedWith("server_unreachable", null));
  });

  test("end on abort, and after a timeout", TIMEOUT, async () => {
    await using proxy = await LossyProxy.before(server().url);
    proxy.fate = () => "hold";
    const held = clientOf(proxy.url);
    await assert.rejects(held.request("GET /api/agents", { timeout_ms: 50 }), refusedWith("server_timeout", null));
    await assert.rejects(held.request("GET /api/agents", { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  });
});

describe("a call whose answer is lost", () => {
  /** Loses the first response for each address. */
  const losesOnce = (proxy: LossyProxy): void => {
    const lost = new Set<string>();
    proxy.fate = ({ method, url = "" }) => {
      if (method === "GET" || lost.has(url)) return "pass";
      lost.add(url);
      return "lose";
    };
  };

  test("is repeated and done once", TIMEOUT, async () => {
    await using proxy = await LossyProxy.before(server().url);
    losesOnce(proxy);
    const lossy = clientOf(proxy.url);
    const agent_id = `lost-${newId()}`;
    const { session_id } = await lossy.create({ agent_id, moniker: "echo" });
    const guided = await lossy.guide(session_id, "once, please", { user_id: "ann" });
    const { conversation_id } = await client().request("POST /api/conversations", { body: {} });
    const { message } = await lossy.say(conversation_id, { user_id: "ann", text: "hello" });
    for await (const event of client().events(session_id, { after: -1 })) if (event.type === "agent_step") break;
    const forked = await lossy.fork(session_id, { iteration: 0 });

    const posted = proxy.passed.filter((line) => line.startsWith("POST"));
    assert.ok(posted.length >= 7, posted.join("\n"));
    const { sessions } = await client().request("GET /api/agents/{agent_id}/sessions", { path: { agent_id } });
    assert.deepEqual(sessions.map((row) => row.session_id).sort(), [session_id, forked.session_id].sort());
    const guidance = (await actionsOf(session_id)).filter(({ action_type }) => action_type === "agent_interrupt");
    assert.deepEqual(
      guidance.map(({ action_id, metadata }) => [action_id, metadata["user_id"]]),
      [[guided.action_id, "ann"]],
    );
    const path = { conversation_id };
    const { messages } = await client().request("GET /api/conversations/{conversation_id}/messages", { path });
    assert.deepEqual(
      messages.map(({ message_id }) => message_id),
      [message.message_id],
    );
  });

  test("that is still in progress when it is sent again is done once", TIMEOUT, async () => {
    const session_id = await create("echo");
    const metadata = { request_id: newId() };
    const body = { guidance: "twice", metadata };
    const path = { session_id };
    const send = () => client().request("POST /api/sessions/{session_id}/interrupt", { path, body });
    const ids = (await Promise.all(Array.from({ length: 20 }, send))).map(({ action_id }) => action_id);
    assert.equal(new Set(ids).size, 1);
    const later = await client().guide(session_id, "twice", { metadata });
    assert.equal(later.action_id, ids[0], "and with an id of the caller's own also later");
    const sent = (await actionsOf(session_id)).filter(({ action_type }) => action_type === "agent_interrupt");
    assert.equal(sent.length, 1);
  });

  test("is not repeated where that could do it twice", TIMEOUT, async () => {
    await using proxy = await LossyProxy.before(server().url);
    losesOnce(proxy);
    await assert.rejects(
      clientOf(proxy.url).request("POST /api/conversations", { body: {} }),
      refusedWith("server_unreachable", null),
    );
    assert.deepEqual(proxy.passed, ["POST /api/conversations"]);
  });
});

describe("the client's events", () => {
  const allOf = async (events: AsyncIterable<SessionEvent>): Promise<SessionEvent[]> => {
    const all: SessionEvent[] = [];
    for await (const event of events) all.push(event);
    return all;
  };
  const stepsIn = (events: SessionEvent[]): Step[] =>
    events.flatMap((event) => (event.type === "agent_step" ? [event.data] : []));

  test("end with the session where that is asked for, its failed attempts included", TIMEOUT, async () => {
    const options = { retry: { max_attempts: 1, backoff_ms: 0 } };
    const session_id = await create("count", { to: 3, fail_at: 2 }, options);
    const events = await allOf(client().events(session_id, { after: -1, until_ended: true }));
    assert.deepEqual(
      stepsIn(events).map(({ iteration, status }) => [iteration, status]),
      [
        [0, "ok"],
        [1, "ok"],
        [2, "error"],
      ],
    );
    const last = events.at(-1);
    assert.ok(last?.type === "agent_state_update" && last.data.status === "error");
    const again = await allOf(client().events(session_id, { until_ended: true }));
    assert.deepEqual(
      again.map(({ type }) => type),
      ["agent_step", "agent_state_update"],
      "without `after` only the attempt at what comes next",
    );
  });

  test("go on after the server was killed: no step is lost, none comes twice", TIMEOUT, async () => {
    const session_id = await create("count", { to: 60, delay_ms: 20 });
    const seen: number[] = [];
    const reasons: Error[] = [];
    let killed: Promise<void> | undefined;
    const kill = async () => {
      await server().kill();
      await server().start();
    };
    const options = { after: -1, until_ended: true, on_disconnect: (error: Error) => reasons.push(error) };
    for await (const { type, data } of client().events(session_id, options)) {
      if (type !== "agent_step") continue;
      seen.push(data.iteration);
      if (data.iteration === 10) killed = kill();
    }
    await killed;
    assert.deepEqual(seen, upTo(60));
    assert.ok(reasons.length > 0);
  });

  test("continue over another connection if one went silent, and deliver a failed attempt once", TIMEOUT, async () => {
    await using proxy = await LossyProxy.before(server().url);
    const options = { retry: { max_attempts: 1, backoff_ms: 0 } };
    const session_id = await create("count", { to: 2, fail_at: 1, fail_times: 1 }, options);
    const connections = () => proxy.passed.filter((line) => line.includes("/events")).length;
    const steps: string[] = [];
    let resumed: Promise<void> | undefined;
    // While the session rests nothing is sent, so the client considers the connection lost and reconnects; the server then
    // sends the attempt again.
    const resume = async (): Promise<void> => {
      await eventually("another connection", async () => connections() > 2);
      await client().resume(session_id);
    };
    for await (const { type, data } of clientOf(proxy.url).events(session_id, { after: -1, silence_ms: 200 })) {
      if (type !== "agent_step") continue;
      steps.push(`${data.iteration} ${data.status}`);
      if (data.status === "error") resumed = resume();
      if (data.iteration === 2) break;
    }
    await resumed;
    assert.deepEqual(steps, ["0 ok", "1 error", "1 ok", "2 ok"]);
  });

  test("close their connection when the reader leaves, and end without an error on abort", TIMEOUT, async () => {
    const session_id = await create("echo");
    const leaving = new AbortController();
    const first = client().events(session_id, { signal: leaving.signal });
    assert.equal((await first.next()).value?.type, "agent_state_update");
    const next = first.next();
    leaving.abort();
    // An event that was in transit when the reader left may arrive; nothing after that.
    assert.equal((await next).done || (await first.next()).done, true);

    await using proxy = await LossyProxy.before(server().url);
    for await (const { type } of clientOf(proxy.url).events(session_id)) {
      assert.equal(type, "agent_state_update");
      break;
    }
    await eventually("the connection is closed", async () => proxy.open === 0);
  });

  test("fail if the server refuses; a session that does not exist yet is waited for", TIMEOUT, async () => {
    await assert.rejects(client().events("nobody").next(), refusedWith("request_refused", 404));
    const nowhere = new EverstepClient({ url: "http://127.0.0.1:9" });
    await assert.rejects(nowhere.events("anything").next(), refusedWith("server_unreachable", null));
    const leaving = new AbortController();
    const options = { wait_for_server: true, signal: leaving.signal, on_disconnect: () => leaving.abort() };
    assert.equal((await nowhere.events("anything", options).next()).done, true);
  });

  test("of everything resume by their id", TIMEOUT, async () => {
    const leaving = new AbortController();
    const all = client().allEvents({ signal: leaving.signal });
    const first = all.next();
    const before = await create("count", { to: 1 });
    let id: string | null = null;
    for (let event = await first; !event.done; event = await all.next()) {
      const { type, data } = event.value;
      id = event.value.id ?? id;
      if (type === "agent_state_update" && data.session_id === before && data.status === "done") break;
    }
    leaving.abort();
    assert.ok(id !== null);
    const missed = await create("count", { to: 1 });
    const steps: number[] = [];
    for await (const { type, data } of client().allEvents({ after: id })) {
      if (type !== "agent_step" || data.session_id !== missed) continue;
      if (steps.push(data.iteration) === 2) break;
    }
    assert.deepEqual(steps, [0, 1]);
  });
});

describe("the parser of server-sent events", () => {
  const TEXT =
    ': hello\nretry: 10\n\nid: 7\n\nevent: a\r\nid: 8\r\ndata: {"x":\r\ndata:1}\r\n\r\ndata: é\r\rdata\n\nid\ndata: end\n\n';
  const EXPECTED = [
    { event: "message", data: null, id: "7" },
    { event: "a", data: '{"x":\n1}', id: "8" },
    { event: "message", data: "é", id: null },
    { event: "message", data: "", id: null },
    { event: "message", data: "end", id: "" },
  ];

  test("finds the same events wherever the text is cut", () => {
    for (let cut = 0; cut <= TEXT.length; cut += 1) {
      const parser = new SseParser();
      const events = [...parser.push(TEXT.slice(0, cut)), ...parser.push(""), ...parser.push(TEXT.slice(cut))];
      assert.deepEqual(events, EXPECTED, `cut at ${cut}`);
    }
    const parser = new SseParser();
    assert.deepEqual(
      TEXT.split("").flatMap((letter) => parser.push(letter)),
      EXPECTED,
    );
  });
});

test("docs/client.md shows a program that compiles and does what it says", TIMEOUT, async () => {
  const blocks = await codeBlocks("client.md");
  assert.deepEqual(
    blocks.map(({ path }) => path),
    ["guide-a-count.ts"],
  );
  await using scratch = await scratchFolder();
  await writeCode(scratch.path, blocks);
  await assertTypes(scratch.path);
  const { stdout } = await promisify(execFile)(process.execPath, [join(scratch.path, "guide-a-count.ts")], {
    env: { PATH: process.env["PATH"], EVERSTEP_URL: server().url, EVERSTEP_TOKEN: TOKEN },
  });
  const lines = stdout.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, 7), [...upTo(5).map((n) => `#${n} ${n}`), "it is done"]);
  assert.match(lines[7] ?? "", /^\d+ of \d+$/);
  assert.equal(lines[8], "request_refused 404 check the id");
});
