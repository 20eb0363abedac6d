import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonValue } from "../../../src/domain/json.ts";
import type { Ask } from "../../../src/domain/question.ts";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

const CHOICES: Ask = { text: "Deploy?", choices: [{ value: "yes", label: "Yes" }, { value: { no: [1] } }] };
const FORM: Ask = {
  text: "Who are you?",
  schema: {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, maxLength: 5, title: "Name" },
      email: { type: "string", format: "email" },
      age: { type: "integer", minimum: 18, maximum: 120 },
      share: { type: "number", maximum: 1 },
      agree: { type: "boolean" },
      colour: { type: "string", enum: ["red", "blue"] },
      day: { type: "string", format: "date" },
      at: { type: "string", format: "date-time" },
      home: { type: "string", format: "uri" },
      size: { type: "string", oneOf: [{ const: "s", title: "small" }] },
      tags: { type: "array", items: { type: "string", enum: ["a", "b"] }, maxItems: 1 },
    },
    required: ["name", "agree"],
  },
};

/** A session's questions, and what happens to the answers. */
export function asking(makeHome: MakeHome): void {
  describe("a session that asks", () => {
    const world = sharedWorld(makeHome);

    const askWith = async (ask: Ask): Promise<{ session_id: string; question_id: string }> => {
      const session_id = await world().create("held");
      (await world().held.next(session_id)).finish({ ask });
      const { question } = await world().untilStatus(session_id, "waiting");
      return { session_id, question_id: question?.question_id ?? "" };
    };
    const submit = (session_id: string, answer: JsonValue, question_id?: string) => {
      const payload = question_id === undefined ? { answer } : { answer, question_id };
      const metadata = { user_id: "ann" };
      return world().runtime.queue.submit({ action_type: "agent_answer", session_id, payload, metadata });
    };

    test(
      "has the question in its row until the next step is committed, and then the answer in that step",
      TIMEOUT,
      async () => {
        const about = { command: "rm -r /tmp/x", zero: "\u0000" };
        const { session_id, question_id } = await askWith({ ...CHOICES, about });
        const { question, wake_at, updated_at } = await world().session(session_id);
        assert.deepEqual(question, {
          question_id,
          text: "Deploy?",
          choices: CHOICES.choices,
          schema: null,
          about,
          asked_at: updated_at,
          iteration: 0,
        });
        assert.equal(wake_at, null);
        const listed = await world().store.listSessions({ needs_person: true, limit: 500, offset: 0 });
        assert.ok(listed.some((row) => row.session_id === session_id));

        const outcome = await submit(session_id, { no: [1] }, question_id);
        assert.ok(outcome.kind === "accepted", JSON.stringify(outcome));
        const step = await world().held.next(session_id);
        assert.deepEqual(step.frame.guidance, [{ answer: { no: [1] }, question_id, user_id: "ann" }]);
        assert.equal(
          (await world().session(session_id)).question?.question_id,
          question_id,
          "open while the step runs",
        );
        step.finish();
        const after = await world().untilIteration(session_id, 1);
        assert.equal(after.question, null);
        const ended = await world().ended(outcome.action_id);
        assert.deepEqual([ended.receipt, ended.consumed_iteration, ended.action_type], ["consumed", 1, "agent_answer"]);
        const still = await world().store.listSessions({ needs_person: true, limit: 500, offset: 0 });
        assert.ok(still.every((row) => row.session_id !== session_id));
      },
    );

    test("takes one of the choices and nothing else", TIMEOUT, async () => {
      const { session_id } = await askWith(CHOICES);
      for (const wrong of ["no", null, { no: [2] }, { no: [1], more: 1 }, "Yes"] as JsonValue[]) {
        const outcome = await submit(session_id, wrong);
        assert.ok(outcome.kind === "invalid", JSON.stringify(wrong));
        assert.deepEqual(
          outcome.errors.map(({ path }) => path),
          ["answer"],
        );
      }
      assert.equal((await submit(session_id, "yes")).kind, "accepted");
    });

    test("takes what fits its schema, and tells every field that does not", TIMEOUT, async () => {
      const { session_id } = await askWith(FORM);
      const whole = {
        name: "😀😀😀😀😀",
        email: "a@example.org",
        age: 18,
        share: 0.5,
        agree: false,
        colour: "red",
        day: "2026-02-28",
        at: "2026-02-28T10:00:00+01:00",
        home: "https://example.org/",
        size: "s",
        tags: ["a"],
        more: 1,
      };
      const wrong: [JsonValue, string[]][] = [
        ["text", ["answer"]],
        [{}, ["answer.name", "answer.agree"]],
        [{ ...whole, name: "" }, ["answer.name"]],
        [{ ...whole, name: "longer" }, ["answer.name"]],
        [{ ...whole, email: "nobody" }, ["answer.email"]],
        [{ ...whole, age: 17 }, ["answer.age"]],
        [{ ...whole, age: 18.5 }, ["answer.age"]],
        [{ ...whole, age: "18" }, ["answer.age"]],
        [{ ...whole, share: 2, agree: "yes" }, ["answer.share", "answer.agree"]],
        [{ ...whole, colour: "green" }, ["answer.colour"]],
        [{ ...whole, day: "28.2.2026" }, ["answer.day"]],
        [{ ...whole, at: "10:00" }, ["answer.at"]],
        [{ ...whole, home: "example" }, ["answer.home"]],
        [{ ...whole, size: "small" }, ["answer.size"]],
        [{ ...whole, tags: ["a", "b"] }, ["answer.tags"]],
      ];
      for (const [answer, paths] of wrong) {
        const outcome = await submit(session_id, answer);
        assert.ok(outcome.kind === "invalid", JSON.stringify(answer));
        assert.deepEqual(
          outcome.errors.map(({ path }) => path),
          paths,
        );
      }
      assert.equal((await submit(session_id, whole)).kind, "accepted");
      assert.deepEqual((await world().held.next(session_id)).frame.guidance?.length, 1);
    });

    test("is woken by plain guidance too, which closes the question like an answer", TIMEOUT, async () => {
      const { session_id, question_id } = await askWith(CHOICES);
      await world().tell(session_id, "never mind");
      const step = await world().held.next(session_id);
      assert.deepEqual(step.frame.guidance, ["never mind"]);
      step.finish({ ask: { text: "And now?" } });
      const { question } = await world().until(session_id, (row) => row.iteration === 1);
      assert.notEqual(question?.question_id, question_id);
      const outcome = await submit(session_id, "yes", question_id);
      assert.deepEqual(outcome.kind, "conflict");
      assert.equal((await submit(session_id, "anything")).kind, "accepted");
    });

    test("goes on at its deadline without an answer", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const until = new Date(Date.now() + 150).toISOString();
      (await world().held.next(session_id)).finish({ ask: CHOICES, wait: { until } });
      const step = await world().held.next(session_id);
      assert.equal(step.frame.guidance, undefined);
      assert.ok((await world().session(session_id)).question);
      step.finish({ wait: {} });
      assert.equal((await world().untilIteration(session_id, 1)).question, null);
    });

    test("nothing takes no answer, nor does one that is unknown or has ended", TIMEOUT, async () => {
      const session_id = await world().create("held");
      await world().held.next(session_id);
      assert.equal((await submit(session_id, "yes")).kind, "conflict");
      assert.equal((await submit("nobody", "yes")).kind, "unknown");
      const asks = await askWith(CHOICES);
      await world().do("agent_destroy", asks.session_id);
      await world().untilStatus(asks.session_id, "stopped");
      assert.equal((await submit(asks.session_id, "yes", asks.question_id)).kind, "conflict");
    });

    test("bounces an answer whose question closed before it was delivered", TIMEOUT, async () => {
      const { session_id, question_id } = await askWith(CHOICES);
      await world().do("agent_pause", session_id);
      const first = await submit(session_id, "yes");
      assert.ok(first.kind === "accepted");
      await world().delivered(first.action_id);
      await world().do("agent_resume", session_id);
      const step = await world().held.next(session_id);
      step.finish();
      await world().untilIteration(session_id, 1);
      // An answer accepted before the step's commit and claimed after it, as the queue has it.
      const late = {
        ...(await world().settled(first.action_id)),
        action_id: `late-${first.action_id}`,
        processed: false,
        processed_at: null,
        outcome: null,
        receipt: "accepted" as const,
        consumed_iteration: null,
        payload: { answer: "yes", question_id },
      };
      await world().store.commit({ actions: [late] });
      const ended = await world().settled(late.action_id);
      assert.deepEqual([ended.outcome, ended.receipt], ["rejected", "bounced"]);
      assert.match(ended.error ?? "", /closed/);
    });
  });
}
