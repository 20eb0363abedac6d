import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { newId } from "../../src/domain/ids.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { listOf, pathOf, problemOf, type Query, read, SHAPES, wrongPaths } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const fresh = (name: string): string => `${name} ${newId()}`;
const posted = z.strictObject({ message: SHAPES.message, action_ids: z.array(z.string()) });

describe("a conversation", () => {
  test("is opened with what was given, and with nothing at all", TIMEOUT, async () => {
    const { api } = world();
    const request = { conversation_id: fresh("talk"), title: "Tea", created_by: "ann", tags: ["a", "b"] };
    const { created_at, ...rest } = read(await api.post("/api/conversations", request), 201, SHAPES.conversation);
    assert.deepEqual(rest, { ...request, status: "open" });
    const conversation = read(
      await api.get(pathOf("conversations", request.conversation_id)),
      200,
      SHAPES.conversation,
    );
    assert.deepEqual(conversation, { ...rest, created_at });
    const plain = read(await api.send("POST", "/api/conversations"), 201, SHAPES.conversation);
    assert.deepEqual(
      { title: plain.title, created_by: plain.created_by, tags: plain.tags, status: plain.status },
      { title: null, created_by: null, tags: [], status: "open" },
    );
  });

  test("opened again under the same id is the same one, whatever the second call says", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = fresh("again");
    const first = read(
      await api.post("/api/conversations", { conversation_id, title: "First" }),
      201,
      SHAPES.conversation,
    );
    const calls = ["First", "Second", "Third"].map((title) =>
      api.post("/api/conversations", { conversation_id, title }),
    );
    for (const answer of await Promise.all(calls)) assert.deepEqual(read(answer, 201, SHAPES.conversation), first);
  });

  test("is changed only where the change says so", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation({ title: "Old", tags: ["x"] });
    const path = pathOf("conversations", conversation_id);
    const change = async (patch: JsonObject) => read(await api.patch(path, patch), 200, SHAPES.conversation);
    assert.deepEqual([(await change({ title: "New" })).title, (await change({})).tags], ["New", ["x"]]);
    assert.equal((await change({ status: "archived" })).status, "archived");
    const last = await change({ title: null, status: "open", tags: [] });
    assert.deepEqual([last.title, last.status, last.tags], [null, "open", []]);
    assert.deepEqual(read(await api.get(path), 200, SHAPES.conversation), last);
  });

  test("changed by several people at once keeps every change", TIMEOUT, async () => {
    const { api } = world();
    for (let round = 0; round < 10; round += 1) {
      const conversation_id = await api.conversation();
      const path = pathOf("conversations", conversation_id);
      const patches: JsonObject[] = [{ title: "New" }, { status: "archived" }, { tags: ["y"] }];
      for (const answer of await Promise.all(patches.map((patch) => api.patch(path, patch))))
        assert.equal(answer.status, 200);
      const { title, status, tags } = read(await api.get(path), 200, SHAPES.conversation);
      assert.deepEqual({ title, status, tags }, { title: "New", status: "archived", tags: ["y"] });
    }
  });

  test("is listed newest first, by status and by tag", TIMEOUT, async () => {
    const { api } = world();
    const tag = fresh("tag");
    const first = await api.conversation({ tags: [tag] });
    const second = await api.conversation({ tags: ["other", tag] });
    await api.conversation({ tags: ["other"] });
    await api.patch(pathOf("conversations", first), { status: "archived" });
    const ids = async (query: Query) =>
      (await api.all("/api/conversations", "conversations", SHAPES.conversation, query)).map(
        (row) => row.conversation_id,
      );
    assert.deepEqual(await ids({ tag }), [second, first]);
    assert.deepEqual(await ids({ tag, status: "open" }), [second]);
    assert.deepEqual(await ids({ tag, status: "archived" }), [first]);
    assert.deepEqual(await ids({ tag: `${tag}"` }), []);
  });

  test("that is unknown is answered 404 by every route", TIMEOUT, async () => {
    const { api } = world();
    const path = pathOf("conversations", fresh("nowhere"));
    problemOf(await api.get(path), 404);
    problemOf(await api.patch(path, { title: "x" }), 404);
    problemOf(await api.get(`${path}/participants`), 404);
    problemOf(await api.post(`${path}/participants`, { user_id: "ann" }), 404);
    problemOf(await api.delete(`${path}/participants/nobody`), 404);
    problemOf(await api.get(`${path}/messages`), 404);
    problemOf(await api.post(`${path}/messages`, { user_id: "ann", text: "hello" }), 404);
  });

  test("with a wrong field is answered 400 at that field", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const path = pathOf("conversations", conversation_id);
    const wrong = async (method: "post" | "patch", url: string, body: object) =>
      wrongPaths(await api[method](url, body as never));
    for (const [body, field] of [
      [{ conversation_id: "" }, "conversation_id"],
      [{ conversation_id: "a\u0007" }, "conversation_id"],
      [{ title: 5 }, "title"],
      [{ tags: "a" }, "tags"],
      [{ tags: [1] }, "tags.0"],
    ] as const)
      assert.deepEqual(await wrong("post", "/api/conversations", body), [field]);
    assert.deepEqual(await wrong("patch", path, { status: "closed" }), ["status"]);
    assert.deepEqual(await wrong("patch", path, { tags: [null] }), ["tags.0"]);
    for (const body of [{}, { user_id: "ann", session_id: "x" }, { agent_id: "a" }])
      assert.deepEqual(await wrong("post", `${path}/participants`, body), [""]);
    assert.deepEqual(await wrong("post", `${path}/participants`, { user_id: 1 }), ["user_id"]);
    assert.deepEqual(await wrong("post", `${path}/messages`, { text: "hello" }), ["user_id"]);
    assert.deepEqual(await wrong("post", `${path}/messages`, { user_id: "ann" }), ["text"]);
    assert.deepEqual(await wrong("post", `${path}/messages`, { user_id: "ann", text: "" }), ["text"]);
    const message = { user_id: "ann", text: "hello" };
    assert.deepEqual(await wrong("post", `${path}/messages`, { ...message, to: "x" }), ["to"]);
    assert.deepEqual(await wrong("post", `${path}/messages`, { ...message, to: ["a stranger"] }), ["to"]);
    assert.deepEqual(await wrong("post", `${path}/messages`, { ...message, mode: "soon" }), ["mode"]);
    assert.deepEqual(wrongPaths(await api.get(`${path}/messages`, { since: "yesterday" })), ["since"]);
    assert.deepEqual(await api.messages(conversation_id), []);
  });
});

describe("a participant", () => {
  test("is a person or a session, with a role or without", TIMEOUT, async () => {
    const { api } = world();
    const path = `${pathOf("conversations", await api.conversation())}/participants`;
    const join = async (body: JsonObject) => read(await api.post(path, body), 201, SHAPES.participant);
    const ann = await join({ user_id: "ann", role: "owner" });
    assert.deepEqual(
      [ann.user_id, ann.agent_id, ann.session_id, ann.role, ann.left_at],
      ["ann", null, null, "owner", null],
    );
    const { agent_id, session_id } = await api.create("echo");
    const agent = await join({ agent_id, session_id });
    assert.deepEqual([agent.user_id, agent.agent_id, agent.session_id, agent.role], [null, agent_id, session_id, null]);
    assert.deepEqual(await api.all(path, "participants", SHAPES.participant), [ann, agent]);
    problemOf(await api.post(path, { agent_id: "not its own", session_id }), 404);
    problemOf(await api.post(path, { agent_id, session_id: "nobody" }), 404);
  });

  test("a session that joins answers there, and speaks in one conversation only", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const { session_id } = await api.create("echo");
    const join = async (id: string) => api.post(`${pathOf("conversations", id)}/participants`, { session_id });
    assert.equal((await join(conversation_id)).status, 201);
    assert.equal((await api.session(session_id)).conversation_id, conversation_id);
    const said = await api.post(`${pathOf("conversations", conversation_id)}/messages`, { user_id: "ann", text: "hi" });
    await world().consumed(read(said, 201, posted).action_ids[0] ?? "");
    const texts = (await api.messages(conversation_id)).map(({ sender_type, text }) => [sender_type, text]);
    assert.deepEqual(texts, [
      ["user", "hi"],
      ["agent", "hi"],
    ]);
    assert.equal((await join(conversation_id)).status, 201);
    const problem = problemOf(await join(await api.conversation()), 409);
    assert.match(problem.detail ?? "", /is already in conversation/);
  });

  test("a person who says something becomes one, once", TIMEOUT, async () => {
    const { api } = world();
    const path = pathOf("conversations", await api.conversation());
    const say = (text: string) => api.post(`${path}/messages`, { user_id: "bea", text });
    for (const answer of await Promise.all(["a", "b", "c"].map(say))) assert.equal(answer.status, 201);
    const participants = await api.all(`${path}/participants`, "participants", SHAPES.participant);
    assert.deepEqual(
      participants.map(({ user_id, left_at }) => [user_id, left_at]),
      [["bea", null]],
    );
  });

  test("who joins twice is in once, with the role that was asked for last", TIMEOUT, async () => {
    const { api } = world();
    const path = `${pathOf("conversations", await api.conversation())}/participants`;
    const first = read(await api.post(path, { user_id: "ann", role: "guest" }), 201, SHAPES.participant);
    const second = read(await api.post(path, { user_id: "ann" }), 201, SHAPES.participant);
    assert.deepEqual(second, first);
    const third = read(await api.post(path, { user_id: "ann", role: "owner" }), 201, SHAPES.participant);
    assert.deepEqual(third, { ...first, role: "owner" });
    assert.deepEqual(await api.all(path, "participants", SHAPES.participant), [third]);
  });

  test("who joins ten times at once is in once", TIMEOUT, async () => {
    const { api } = world();
    const path = `${pathOf("conversations", await api.conversation())}/participants`;
    const { session_id } = await api.create("echo");
    const joining: JsonObject[] = [{ user_id: "ann" }, { session_id }];
    const bodies = joining.flatMap((body) => Array.from({ length: 10 }, () => body));
    for (const answer of await Promise.all(bodies.map((body) => api.post(path, body))))
      assert.equal(answer.status, 201);
    assert.equal((await api.all(path, "participants", SHAPES.participant)).length, 2);
  });

  test("who leaves keeps a row that says when, and may come back as someone new", TIMEOUT, async () => {
    const { api } = world();
    const path = `${pathOf("conversations", await api.conversation())}/participants`;
    const { participant_id } = read(await api.post(path, { user_id: "ann" }), 201, SHAPES.participant);
    const left = await api.delete(`${path}/${participant_id}`);
    assert.deepEqual([left.status, left.text], [204, ""]);
    const [gone] = await api.all(path, "participants", SHAPES.participant);
    assert.ok(gone?.left_at);
    assert.equal((await api.delete(`${path}/${participant_id}`)).status, 204);
    assert.deepEqual((await api.all(path, "participants", SHAPES.participant))[0], gone, "who left stays so");
    const back = read(await api.post(path, { user_id: "ann" }), 201, SHAPES.participant);
    assert.notEqual(back.participant_id, participant_id);
    problemOf(await api.delete(`${path}/nobody`), 404);
    const elsewhere = `${pathOf("conversations", await api.conversation())}/participants`;
    problemOf(await api.delete(`${elsewhere}/${back.participant_id}`), 404);
  });
});

describe("a message", () => {
  test("is stored once under the id that its sender gave, however often it is sent", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const path = `${pathOf("conversations", conversation_id)}/messages`;
    const { session_id } = await api.create("echo");
    await api.post(`${pathOf("conversations", conversation_id)}/participants`, { session_id });
    const body = { message_id: fresh("word"), user_id: "ann", text: "hello", data: { n: [1] } };
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.post(path, body)));
    const [first, ...rest] = answers.map((answer) => read(answer, 201, posted));
    for (const answer of rest) assert.deepEqual(answer, first);
    assert.deepEqual([first?.message.data, first?.message.sender_type], [{ n: [1] }, "user"]);
    assert.equal(first?.action_ids.length, 1);
    await world().consumed(first?.action_ids[0] ?? "");
    assert.deepEqual(read(await api.post(path, body), 201, posted), first);
    assert.equal((await api.steps(session_id)).length, 1);
    const [word, answer, ...more] = await api.messages(conversation_id);
    assert.deepEqual([word, answer?.text, more], [first?.message, "hello", []]);
    const elsewhere = `${pathOf("conversations", await api.conversation())}/messages`;
    problemOf(await api.post(elsewhere, body), 409);
    await api.patch(pathOf("conversations", conversation_id), { status: "archived" });
    assert.deepEqual(read(await api.post(path, body), 201, posted), first, "what was said before the end stays said");
    problemOf(await api.post(path, { ...body, message_id: fresh("word") }), 409);
  });

  test("is listed oldest first, from a time or after another one, in pages", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const path = `${pathOf("conversations", conversation_id)}/messages`;
    for (let n = 0; n < 6; n += 1)
      await api.post(path, { user_id: "ann", text: String(n), message_id: `${conversation_id} ${n}` });
    const texts = async (query: Query) =>
      read(await api.get(path, query), 200, listOf("messages", SHAPES.message))["messages"]?.map(({ text }) => text);
    const all = await api.messages(conversation_id);
    assert.deepEqual(await texts({}), ["0", "1", "2", "3", "4", "5"]);
    assert.deepEqual(await texts({ after: `${conversation_id} 3` }), ["4", "5"]);
    assert.deepEqual(await texts({ after: `${conversation_id} 1`, limit: 2, offset: 1 }), ["3", "4"]);
    assert.deepEqual(await texts({ limit: 2, offset: 5 }), ["5"]);
    assert.deepEqual(await texts({ after: "unknown" }), []);
    assert.ok((await texts({ since: all[4]?.created_at ?? "" }))?.join().endsWith("4,5"));
    assert.deepEqual(await texts({ since: "2999-01-01T00:00:00.000Z" }), []);
  });
});
