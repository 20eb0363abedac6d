import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Action } from "../../src/domain/action.ts";
import type { Message } from "../../src/domain/conversation.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { pathOf } from "../server/api.ts";
import { eventually, ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { within } from "../within.ts";
import { SseClient } from "./sse-client.ts";

const TOKEN = "sesame-of-the-streams";
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };
const upTo = (last: number) => Array.from({ length: last + 1 }, (_, index) => index);
const iterations = (client: SseClient) => client.of<Step>("agent_step").map(({ iteration }) => iteration);

describe("server-sent events", () => {
  let world: World;
  let idle: SseClient;
  before(async () => {
    world = await World.of(await ServerProcess.start());
    idle = await SseClient.open(`${world.server.url}/api/events`);
  });
  after(async () => {
    await idle[Symbol.asyncDispose]();
    world.close();
    await world.server.finish();
  });
  const eventsOf = (session_id: string, query = "") =>
    SseClient.open(`${world.server.url}${pathOf("sessions", session_id, "events")}${query}`);

  test("of a session are those of Socket.IO, from where it stands", TIMEOUT, async () => {
    const { session_id } = await world.api.create("echo");
    await world.status(session_id, "waiting");
    await using client = await eventsOf(session_id);
    const state = await client.until("where it stands", () => client.of<Session>("agent_state_update")[0]);
    assert.equal(state.session_id, session_id);
    await world.control(session_id, "interrupt", { guidance: "hello" });
    await client.until("the receipt", () => client.of<Action>("action_update").find((a) => a.receipt === "consumed"));
    const [step] = await client.until(
      "the step",
      () => client.of<Step>("agent_step").length === 1 && client.of<Step>("agent_step"),
    );
    assert.deepEqual([step?.text, step?.iteration], ["hello", 0]);
    assert.deepEqual(
      client
        .of<{ text: string; event_seq: number }>("agent_step_delta")
        .map(({ text, event_seq }) => [text, event_seq]),
      [["hello", 0]],
    );
    assert.equal(client.last_id, "0");
  });

  test("of a session go on after any id, none lost and none twice", TIMEOUT, async () => {
    const { session_id } = await world.api.create("count", { params: { to: 300 } });
    for (const id of ["-1", "0", "7", "150", "300"]) {
      const seen = Number(id);
      await using byHeader = await SseClient.open(`${world.server.url}${pathOf("sessions", session_id, "events")}`, {
        "last-event-id": id,
      });
      await using byQuery = await eventsOf(session_id, `?last_event_id=${id}`);
      await using byIteration = await eventsOf(session_id, `?after_iteration=${id}`);
      for (const client of [byHeader, byQuery, byIteration]) {
        await client.until("all", () => iterations(client).length === 300 - seen);
        assert.deepEqual(iterations(client), upTo(300).slice(seen + 1));
      }
    }
  });

  test("of everything cover steps, sessions, receipts and messages", TIMEOUT, async () => {
    await using client = await SseClient.open(`${world.server.url}/api/events`);
    const conversation_id = await world.api.conversation();
    const { session_id } = await world.api.create("echo", { conversation_id });
    await world.api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "ann", text: "hi there" });
    const of = <Row extends { session_id: string | null }>(event: string) =>
      client.of<Row>(event).filter((row) => row.session_id === session_id);
    await client.until("the answer", () => of<Message>("conversation_message").length === 1);
    await client.until("the step", () => of<Step>("agent_step").length === 1);
    await client.until("the receipt", () => of<Action>("action_update").find(({ receipt }) => receipt === "consumed"));
    assert.ok(
      client.of<Message>("conversation_message").some(({ user_id, text }) => user_id === "ann" && text === "hi there"),
    );
    assert.ok(of("agent_step_delta").length > 0 && of("conversation_message_delta").length > 0);
  });

  test(
    "of everything give a reader that was away what it missed, including a quiet conversation",
    TIMEOUT,
    async () => {
      const first = await SseClient.open(`${world.server.url}/api/events`);
      const { session_id } = await world.api.create("count", { params: { to: 20 } });
      await first.until("a step", () => first.of<Step>("agent_step").some((step) => step.session_id === session_id));
      await first[Symbol.asyncDispose]();
      const conversation_id = await world.api.conversation();
      await world.api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "ben", text: "anyone?" });
      await world.ended(session_id);
      await using again = await SseClient.open(`${world.server.url}/api/events?last_event_id=${first.last_id}`);
      await again.until("the message", () =>
        again.of<Message>("conversation_message").find(({ text }) => text === "anyone?"),
      );
      await again.until("the end", () =>
        again.of<Session>("agent_state_update").find((row) => row.session_id === session_id && row.status === "done"),
      );
      const seen = [...first.of<Step>("agent_step"), ...again.of<Step>("agent_step")].filter(
        (step) => step.session_id === session_id,
      );
      assert.deepEqual(
        [...new Set(seen.map(({ iteration }) => iteration))].sort((a, b) => a - b),
        upTo(20),
      );
      assert.deepEqual(again.of("reset"), []);
    },
  );

  test("of everything answer an unknown position with a reset, and continue", TIMEOUT, async () => {
    for (const id of ["nonsense", "2999-01-01T00:00:00.000Z"]) {
      await using client = await SseClient.open(`${world.server.url}/api/events`, { "last-event-id": id });
      const { tables } = await client.until("the reset", () => client.of<{ tables: string[] }>("reset")[0]);
      assert.deepEqual(tables, ["sessions", "conversations"]);
      const { session_id } = await world.api.create("count", { params: { to: 1 } });
      await client.until("a step", () => client.of<Step>("agent_step").some((step) => step.session_id === session_id));
    }
  });

  test("are refused if the session is unknown or the position is invalid", TIMEOUT, async () => {
    const { session_id } = await world.api.create("echo");
    const status = async (path: string, headers = {}) => (await world.api.send("GET", path, undefined, headers)).status;
    assert.equal(await status(pathOf("sessions", "nobody", "events")), 404);
    assert.equal(await status(pathOf("sessions", session_id, "events"), { "last-event-id": "x" }), 400);
    assert.equal(await status(`${pathOf("sessions", session_id, "events")}?after_iteration=-2`), 400);
  });

  test("keep a quiet connection alive with comments", TIMEOUT, async () => {
    await eventually("a heartbeat", async () => idle.comments > 0);
  });
});

describe("a server with a token", () => {
  test("takes it from the header or the address of a stream only, and logs none", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_TOKEN: TOKEN, EVERSTEP_LOG_LEVEL: "trace" });
    const status = async (path: string, headers = {}) => {
      const leaving = new AbortController();
      const response = await fetch(server.url + path, { headers, signal: leaving.signal });
      leaving.abort();
      return response.status;
    };
    assert.equal(await status("/api/events"), 401);
    assert.equal(await status("/api/events?token=wrong"), 401);
    assert.equal(await status(`/api/sessions?token=${TOKEN}`), 401);
    assert.equal(await status("/api/events", AUTHORIZED), 200);
    assert.equal(await status(`/api/events?token=${TOKEN}`), 200);
    assert.equal(await status(`/api/sessions/nobody/events?token=${TOKEN}`), 404);
    assert.ok(!server.stderr.includes(TOKEN) && !server.stdout.includes(TOKEN));
  });
});

describe("a stream", () => {
  test("ends when the server is asked to stop, which it does not hold up", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    await using client = await SseClient.open(`${server.url}/api/events`);
    const { code, ms } = await server.stop();
    await within(10_000, client.ended, () => "the stream did not end");
    assert.equal(code, 0);
    assert.ok(ms < 4000, `it took ${ms} ms`);
  });

  test("that nobody reads is dropped, and others lose nothing", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_SLOW_READER_S: "1" });
    const world = await World.of(server);
    const { port } = new URL(server.url);
    const deaf = connect(Number(port), "127.0.0.1").pause();
    deaf.on("error", () => {});
    await once(deaf, "connect");
    deaf.write(`GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`);
    const gone = new Promise((resolve) => deaf.once("close", resolve));
    // More than the network buffers for a client that does not read.
    const { session_id: large } = await world.api.create("count", { params: { to: 59, payload_bytes: 1_000_000 } });
    const { session_id } = await world.api.create("count", { params: { to: 200 } });
    await using reading = await SseClient.open(
      `${server.url}${pathOf("sessions", session_id, "events")}?after_iteration=-1`,
    );
    await reading.until("the last step", () => iterations(reading).length === 201);
    assert.deepEqual(iterations(reading), upTo(200));
    await world.ended(large);
    // A client that does not read notices a closed connection only when it writes.
    await eventually("the end of the stream", async () => deaf.destroyed || (deaf.write("\r\n"), false));
    await gone;
    world.close();
  });
});
