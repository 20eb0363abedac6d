import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { WebSocket } from "ws";
import { Api, pathOf, problemOf } from "./api.ts";
import { everstep } from "./command.ts";
import { sharedServer, TIMEOUT } from "./server-fixture.ts";

const LIMIT = 5;
const LIMIT_BYTES = 2000;
const TOO_LONG = "x".repeat(LIMIT_BYTES);

describe("guidance for a session that already has too much", () => {
  const server = sharedServer({
    EVERSTEP_MAX_PENDING_GUIDANCE: String(LIMIT),
    EVERSTEP_MAX_PENDING_GUIDANCE_BYTES: String(LIMIT_BYTES),
  });
  const api = (): Api => new Api(server().url);

  async function fullSession(conversation_id?: string): Promise<string> {
    const { session_id } = await api().create("echo", conversation_id === undefined ? {} : { conversation_id });
    await api().post(pathOf("sessions", session_id, "pause"));
    for (let at = 0; at < LIMIT; at += 1)
      assert.equal((await api().post(pathOf("sessions", session_id, "interrupt"), { guidance: at })).status, 202);
    return session_id;
  }

  test("is answered 429 with a reason and a time, and nothing of it is stored", TIMEOUT, async () => {
    const session_id = await fullSession();
    const { agent_id } = await api().session(session_id);
    for (const [path, body] of [
      [pathOf("sessions", session_id, "interrupt"), { guidance: "more" }],
      [pathOf("agents", agent_id, "interrupt"), { guidance: "more" }],
      ["/api/actions", { action_type: "agent_input", session_id, payload: { text: "more" } }],
    ] as const) {
      const answer = await api().post(path, body);
      assert.match(problemOf(answer, 429).detail, /^guidance_full: .*; .*resume/);
      assert.ok(Number(answer.headers.get("retry-after")) > 0);
    }
    const actions = await api().get("/api/actions", { session_id });
    assert.equal((JSON.parse(actions.text) as { actions: unknown[] }).actions.length, LIMIT + 2);
  });

  test("does not keep anybody from resuming or destroying it, and is taken in again afterwards", TIMEOUT, async () => {
    const session_id = await fullSession();
    assert.equal((await api().post(pathOf("sessions", session_id, "interrupt"), { guidance: "more" })).status, 429);
    assert.equal((await api().post(pathOf("sessions", session_id, "resume"))).status, 202);
    const again = async () =>
      (await api().post(pathOf("sessions", session_id, "interrupt"), { guidance: "more" })).status;
    let status = await again();
    for (; status === 429; status = await again()) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(status, 202);
    assert.equal((await api().post(pathOf("sessions", session_id, "destroy"))).status, 202);
  });

  test("as a message is refused whole, and the same message may be sent again", TIMEOUT, async () => {
    const conversation_id = await api().conversation();
    const session_id = await fullSession(conversation_id);
    const message = { user_id: "ann", text: "more", message_id: `to ${session_id}` };
    const path = pathOf("conversations", conversation_id, "messages");
    const answer = await api().post(path, message);
    assert.match(problemOf(answer, 429).detail, /^guidance_full: /);
    assert.ok(Number(answer.headers.get("retry-after")) > 0);
    assert.deepEqual(await api().messages(conversation_id), []);
    await api().post(pathOf("sessions", session_id, "resume"));
    const send = async () => (await api().post(path, message)).status;
    let status = await send();
    for (; status === 429; status = await send()) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(status, 201);
  });

  test("is refused on the command line with the reason", TIMEOUT, async () => {
    const { session_id } = await api().create("echo");
    const { code, stderr } = await everstep(["interrupt", session_id, TOO_LONG, "--url", server().url]);
    assert.equal(code, 1);
    assert.match(stderr, /guidance_full: /);
  });

  test("is answered with an error on the chat's socket, which stays", TIMEOUT, async () => {
    const socket = new WebSocket(`${server().url.replace("http", "ws")}/agent_ws/`);
    const frames: { type: string; code?: string; message?: string }[] = [];
    const received = Promise.withResolvers<void>();
    socket.on("message", (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as (typeof frames)[number];
      frames.push(frame);
      if (frame.type === "status") socket.send(JSON.stringify({ type: "user_message", text: TOO_LONG }));
      if (frame.type === "error") socket.send(JSON.stringify({ type: "user_message", text: "hello" }));
      if (frame.type === "event_end") received.resolve();
    });
    await received.promise;
    socket.close();
    const error = frames.find(({ type }) => type === "error");
    assert.equal(error?.code, "agent_error");
    assert.match(error?.message ?? "", /guidance_full: /);
  });
});
