import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { pathOf, problemOf, read, SHAPES, wrongPaths } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();

/** A session whose first step asks, and whose second step reports the answer. */
const asking = async (ask: JsonObject): Promise<{ session_id: string; question_id: string }> => {
  const frame = { step: "0", next_step: "1", state: {}, done: false };
  const frames = [
    { ...frame, text: "asked", ask },
    { ...frame, text: "answered", done: true },
  ];
  const { session_id } = await world().api.create("script", { params: { frames } });
  const { question } = await world().status(session_id, "waiting");
  return { session_id, question_id: question?.question_id ?? "" };
};

describe("POST /api/sessions/:session_id/answer", () => {
  test("brings the answer to the step, with a receipt that tells which", TIMEOUT, async () => {
    const { api } = world();
    const { session_id, question_id } = await asking({ text: "Deploy?", choices: [{ value: "yes" }, { value: "no" }] });
    const needing = await api.all("/api/sessions", "sessions", SHAPES.session, { needs_person: "true" });
    assert.ok(needing.some((session) => session.session_id === session_id));
    const body = { answer: "yes", question_id, user_id: "ann" };
    const answer = await api.post(pathOf("sessions", session_id, "answer"), body);
    const accepted = read(answer, 202, SHAPES.accepted);
    assert.equal(accepted.session_id, session_id);
    const done = await world().status(session_id, "done");
    assert.equal(done.question, null);
    const [, step] = await api.steps(session_id);
    assert.deepEqual(step?.guidance, [{ answer: "yes", question_id, user_id: "ann" }]);
    assert.deepEqual(step?.action_ids, [accepted.action_id]);
    const action = await api.action(accepted.action_id);
    assert.deepEqual(
      [action.action_type, action.receipt, action.consumed_iteration, action.metadata],
      ["agent_answer", "consumed", 1, { user_id: "ann" }],
    );
  });

  test(
    "refuses what does not fit with the paths, a closed question with 409, an unknown session with 404",
    TIMEOUT,
    async () => {
      const { api } = world();
      const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
      const { session_id, question_id } = await asking({ text: "How many?", schema });
      const path = pathOf("sessions", session_id, "answer");
      assert.deepEqual(wrongPaths(await api.post(path, { answer: { n: "one" } })), ["answer.n"]);
      assert.deepEqual(wrongPaths(await api.post(path, { question_id })), ["answer"]);
      problemOf(await api.post(path, { answer: { n: 1 }, question_id: "another" }), 409);
      problemOf(await api.post(pathOf("sessions", "nobody", "answer"), { answer: 1 }), 404);
      const request = { action_type: "agent_answer", session_id, payload: { answer: { n: 1 }, user_id: "bob" } };
      read(await api.post("/api/actions", request), 202, SHAPES.accepted);
      await world().status(session_id, "done");
      const [, step] = await api.steps(session_id);
      assert.deepEqual(step?.guidance, [{ answer: { n: 1 }, question_id, user_id: "bob" }]);
      problemOf(await api.post(path, { answer: { n: 1 }, question_id }), 409);
    },
  );

  test(
    "takes edited arguments beside the choice where a tool's call is asked about, nowhere else",
    TIMEOUT,
    async () => {
      const { api } = world();
      const choices = [{ value: "approve" }, { value: "deny" }];
      const args = { path: "b.md" };
      const about = { kind: "tool", tool: "files/write", args: { path: "a.md" } };
      const { session_id } = await asking({ text: "May I?", choices, about });
      const path = pathOf("sessions", session_id, "answer");
      assert.deepEqual(wrongPaths(await api.post(path, { answer: { choice: "often", args } })), ["answer.choice"]);
      assert.deepEqual(wrongPaths(await api.post(path, { answer: { args } })), ["answer.choice"]);
      assert.deepEqual(wrongPaths(await api.post(path, { answer: { choice: "approve", args: 1 } })), ["answer.args"]);
      read(await api.post(path, { answer: { choice: "approve", args } }), 202, SHAPES.accepted);
      await world().status(session_id, "done");
      const other = await asking({ text: "May I?", choices, about: { kind: "constructor" } });
      const answer = { choice: "approve", args };
      assert.deepEqual(wrongPaths(await api.post(pathOf("sessions", other.session_id, "answer"), { answer })), [
        "answer",
      ]);
    },
  );
});
