import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import type { Message } from "../../src/domain/conversation.ts";
import { type Answer, Api, type Query, read, SHAPES } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();

const IDS = [
  "'",
  '"',
  "''; DROP TABLE agent_state; --",
  "' OR '1'='1",
  "%",
  "%27",
  "%2e%2e%2f",
  "100%_sure",
  "a/b",
  "/",
  "//",
  "..",
  ".",
  "../../health",
  "\\",
  "a\\'b",
  "?status=done#x",
  "a&limit=1",
  "a+b c",
  " ",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "null",
  "undefined",
  "-1",
  "*",
  "${process.env}",
  "<script>alert(1)</script>",
  "😀👩‍👩‍👧‍👦",
  "é",
  "e\u0301",
  "שלום \u202eעולם",
  "مرحبا",
  "\u200b",
  "\u2028",
  "\ufeff",
  "x".repeat(200),
  "й".repeat(200),
  "漢".repeat(200),
  "😀".repeat(100),
];

/** Sends paths exactly as they are; `fetch` would resolve dots, escaped or not. */
class ExactApi extends Api {
  override async send(method: string, path: string, body?: string | Uint8Array, headers = {}): Promise<Answer> {
    const { hostname, port } = new URL(this.url);
    const sent = request({ hostname, port, method, path, headers });
    sent.end(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const { "content-type": type = "" } = response.headers;
    return {
      status: response.statusCode ?? 0,
      headers: new Headers({ "content-type": type }),
      text: await text(response),
    };
  }
}

const pathOf = (...parts: string[]): string =>
  `/api/${parts.map((part) => encodeURIComponent(part).replaceAll(".", "%2E")).join("/")}`;
const nameOf = (id: string): string => (id.length > 40 ? `${id.slice(0, 4)}… of ${id.length}` : JSON.stringify(id));

/** Every way to read the rows of a session, an agent and a conversation that all have this id. */
async function verifyRows(api: Api, id: string): Promise<void> {
  const session = read(await api.get(pathOf("sessions", id)), 200, SHAPES.session);
  assert.deepEqual([session.agent_id, session.session_id, session.conversation_id], [id, id, id]);
  const agent = read(await api.get(pathOf("agents", id)), 200, SHAPES.agent);
  assert.deepEqual([agent.agent_id, agent.session_count, agent.latest.session_id], [id, 1, id]);
  for (const query of [{ session_id: id }, { agent_id: id }] as Query[]) {
    const [step, ...more] = await api.all("/api/agent-steps", "steps", SHAPES.step, query);
    assert.deepEqual([step?.session_id, step?.text, more], [id, wordsFor(id), []]);
    assert.deepEqual(read(await api.get("/api/agent-steps/latest", query), 200, SHAPES.step), step);
    const actions = await api.all("/api/actions", "actions", SHAPES.action, query);
    assert.deepEqual(
      actions.slice(-2).map(({ action_type }) => action_type),
      ["agent_input", "agent_create"],
    );
    const hits = await api.all("/api/search", "hits", SHAPES.hit, { q: "hello", ...query });
    assert.deepEqual(hits.map(({ kind }) => kind).sort(), ["message", "step"]);
    assert.ok(hits.every(({ session_id }) => session_id === id));
  }
  const sessionsOf = [
    await api.all("/api/sessions", "sessions", SHAPES.session, { agent_id: id }),
    await api.all(pathOf("agents", id, "sessions"), "sessions", SHAPES.session),
  ];
  for (const sessions of sessionsOf)
    assert.deepEqual(
      sessions.map(({ session_id }) => session_id),
      [id],
    );
  assert.equal(read(await api.get(pathOf("agents", id, "config")), 200, SHAPES.config).agent_id, id);
  assert.equal(read(await api.get(pathOf("conversations", id)), 200, SHAPES.conversation).conversation_id, id);
  const people = await api.all(pathOf("conversations", id, "participants"), "participants", SHAPES.participant);
  assert.deepEqual(
    people.map(({ session_id, user_id }) => session_id ?? user_id),
    [id, id],
  );
  const messages = await api.all(pathOf("conversations", id, "messages"), "messages", SHAPES.message);
  assert.deepEqual(
    messages.map(({ sender_type, text: said }) => [sender_type, said]),
    [
      ["user", wordsFor(id)],
      ["agent", wordsFor(id)],
    ],
  );
  const [answer] = await api.all(pathOf("conversations", id, "messages"), "messages", SHAPES.message, { after: id });
  assert.deepEqual(answer, messages[1]);
}

const wordsFor = (id: string): string => `hello ${id}`;

describe("an id is data, whatever it contains:", () => {
  for (const id of IDS) {
    test(nameOf(id), TIMEOUT, async () => {
      const api = new ExactApi(world().server.url);
      read(await api.post("/api/conversations", { conversation_id: id }), 201, SHAPES.conversation);
      using watcher = await Watcher.connect(api.url);
      await watcher.follow({ session_id: id, after_iteration: -1 });
      await watcher.follow({ conversation_id: id, after: "" });
      const body = { agent_id: id, moniker: "echo", session_id: id, conversation_id: id };
      const made = read(await api.post("/api/agents", body), 202, SHAPES.accepted);
      assert.deepEqual([made.agent_id, made.session_id], [id, id]);
      read(await api.put(pathOf("agents", id, "config"), { moniker: "echo" }), 200, SHAPES.config);
      const message = { message_id: id, user_id: id, text: wordsFor(id) };
      const said = await api.post(pathOf("conversations", id, "messages"), message);
      assert.equal(said.status, 201, said.text);
      const answers = () => watcher.of<Message>("conversation_message").filter(({ session_id }) => session_id === id);
      await watcher.until("the answer", () => answers().length === 1 && watcher.of("agent_step").length === 1);
      await verifyRows(api, id);
      for (const [target, verb] of [
        ["sessions", "pause"],
        ["agents", "resume"],
      ] as const) {
        const control = await api.post(pathOf(target, id, verb));
        assert.equal((await world().settled(read(control, 202, SHAPES.accepted).action_id)).outcome, "ok");
      }
    });
  }

  test("all of them, after their rows were moved into the history's tables", TIMEOUT, async () => {
    const { server } = world();
    await server.stop();
    await server.start();
    for (const id of IDS) await verifyRows(new ExactApi(server.url), id);
  });
});
