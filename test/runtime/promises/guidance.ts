import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonValue } from "../../../src/domain/json.ts";
import { type MakeHome, sharedWorld, TIMEOUT, World } from "../runtime-fixture.ts";

const HOUR_MS = 3_600_000;

/** Guidance is in exactly one committed step, in order, and its receipt names that step. */
export function guidance(makeHome: MakeHome): void {
  describe("guidance is in exactly one step when it is sent", () => {
    const world = sharedWorld(makeHome);

    test("before the first step", TIMEOUT, async () => {
      await using narrow = await World.open(makeHome, { max_running_steps: 1 });
      const first = await narrow.create("held", { options: { max_steps: 1 } });
      const step = await narrow.held.next(first);
      const session_id = await narrow.create("held");
      const pieces = await tellAll(narrow, session_id, ["a", "b"]);
      step.finish();
      const own = await narrow.held.next(session_id);
      assert.deepEqual(own.frame.guidance, ["a", "b"]);
      own.finish();
      await usedOnce(narrow, session_id, { 0: pieces });
    });

    test("during a step", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      const pieces = await tellAll(world(), session_id, ["a", { subject: "b" }, 3]);
      for (const { action_id } of pieces) assert.equal((await world().settled(action_id)).receipt, "delivered");
      assert.deepEqual((await world().session(session_id)).pending_guidance, ["a", { subject: "b" }, 3]);
      step.finish();
      const next = await world().held.next(session_id);
      assert.equal("guidance" in step.frame, false);
      assert.deepEqual(next.frame.guidance, ["a", { subject: "b" }, 3]);
      next.finish();
      assert.equal("guidance" in (await world().held.next(session_id)).frame, false);
      await usedOnce(world(), session_id, { 1: pieces });
      assert.deepEqual((await world().session(session_id)).pending_guidance, []);
    });

    test("during each of ten steps", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const expected: Used = {};
      for (let iteration = 0; iteration < 10; iteration += 1) {
        const step = await world().held.next(session_id);
        expected[iteration + 1] = await tellAll(world(), session_id, [`${iteration}a`, `${iteration}b`]);
        step.finish();
      }
      (await world().held.next(session_id)).finish();
      await usedOnce(world(), session_id, expected);
    });

    test("while the session is paused", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      const during = await tellAll(world(), session_id, ["while the step ran"]);
      step.finish();
      await world().untilIteration(session_id, 0);
      const after = await tellAll(world(), session_id, ["while it rested"]);
      await world().meanwhile();
      assert.equal(world().held.started(session_id), 1);
      await world().do("agent_resume", session_id);
      (await world().held.next(session_id)).finish();
      await usedOnce(world(), session_id, { 1: [...during, ...after] });
    });

    test("during the wait before a retry", TIMEOUT, async () => {
      const retry = { max_attempts: 5, backoff_ms: HOUR_MS };
      const session_id = await world().create("held", { options: { retry } });
      (await world().held.next(session_id)).fail(new Error("once"));
      await world().meanwhile();
      const pieces = await tellAll(world(), session_id, ["a"]);
      await world().meanwhile();
      assert.equal(world().held.started(session_id), 1, "what can wait does not use up an attempt");
      await world().do("agent_pause", session_id);
      await world().do("agent_resume", session_id);
      const again = await world().held.next(session_id);
      assert.deepEqual(again.frame.guidance, ["a"]);
      again.finish();
      await usedOnce(world(), session_id, { 0: pieces });
    });

    test("to a step that then fails and is tried again", TIMEOUT, async () => {
      const retry = { max_attempts: 3, backoff_ms: 0 };
      const session_id = await world().create("held_reactive", { options: { retry } });
      const pieces = await tellAll(world(), session_id, ["a"]);
      for (const attempt of [1, 2]) {
        const step = await world().held.next(session_id);
        assert.deepEqual(step.frame.guidance, ["a"], `attempt ${attempt}`);
        step.fail(new Error("not yet"));
      }
      (await world().held.next(session_id)).finish();
      await usedOnce(world(), session_id, { 0: pieces });
    });

    test("in the interval between two steps", TIMEOUT, async () => {
      const session_id = await world().create("held", { options: { step_interval_ms: HOUR_MS } });
      (await world().held.next(session_id)).finish();
      await world().untilIteration(session_id, 0);
      await world().meanwhile();
      const pieces = await tellAll(world(), session_id, ["a"]);
      const next = await world().held.next(session_id);
      assert.deepEqual(next.frame.guidance, ["a"]);
      next.finish();
      await usedOnce(world(), session_id, { 1: pieces });
    });

    test("as an input, whose payload is the guidance or names it", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      await world().do("agent_pause", session_id);
      const send = (payload: object) => world().submit({ action_type: "agent_input", session_id, payload });
      const plain = await send({ text: "hello", user_id: "ada", mode: "next" });
      const named = await send({ guidance: ["named"], mode: "next" });
      await Promise.all([plain, named].map(({ action_id }) => world().settled(action_id)));
      await world().do("agent_resume", session_id);
      (await world().held.next(session_id)).finish();
      await usedOnce(world(), session_id, {
        0: [
          { action_id: plain.action_id, said: { text: "hello", user_id: "ada" } },
          { action_id: named.action_id, said: ["named"] },
        ],
      });
    });

    test("as any JSON value, unchanged", TIMEOUT, async () => {
      const values: JsonValue[] = [
        ...(JSON.parse('[null, false, 0, "", [], {}, -1.5, {"__proto__": {"polluted": true}}]') as JsonValue[]),
        { deep: [{ a: [null] }] },
        "é🔑\n\u0000",
        "x".repeat(200_000),
      ];
      const session_id = await world().create("held_reactive");
      await world().do("agent_pause", session_id);
      const pieces = await tellAll(world(), session_id, values);
      await world().do("agent_resume", session_id);
      const step = await world().held.next(session_id);
      assert.equal(JSON.stringify(step.frame.guidance), JSON.stringify(values));
      step.finish();
      await usedOnce(world(), session_id, { 0: pieces });
    });

    test("and the moniker changes what it was given in place", TIMEOUT, async () => {
      const moniker = world().moniker("reactive", ({ step, state, guidance: pieces = [] }) => {
        for (const said of pieces as { list: string[] }[]) said.list.push("spoiled");
        pieces.length = 0;
        return { step, next_step: "1", state, done: false };
      });
      const session_id = await world().create(moniker);
      const pieces = await tellAll(world(), session_id, [{ list: ["sent"] }]);
      await usedOnce(world(), session_id, { 0: pieces });
    });
  });
}

export type GuidancePiece = { action_id: string; said: JsonValue };
/** What each iteration should have used; the others used nothing. */
export type Used = { [iteration: number]: GuidancePiece[] };

/** Sends guidance in order and waits until the session has all of it. */
export async function tellAll(world: World, session_id: string, values: JsonValue[]): Promise<GuidancePiece[]> {
  const pieces: GuidancePiece[] = [];
  for (const said of values) pieces.push({ said, action_id: await world.tell(session_id, said) });
  for (const { action_id } of pieces) await world.delivered(action_id);
  return pieces;
}

/** Throws unless all guidance sent is in the expected steps, once, and the receipts say so. */
export async function usedOnce(world: World, session_id: string, expected: Used): Promise<void> {
  for (const [iteration, pieces] of Object.entries(expected)) {
    for (const { action_id } of pieces) {
      const { receipt, consumed_iteration, outcome, processed } = await world.ended(action_id);
      assert.deepEqual(
        { receipt, consumed_iteration, outcome, processed },
        { receipt: "consumed", consumed_iteration: Number(iteration), outcome: "ok", processed: true },
      );
    }
  }
  for (const step of await world.steps(session_id)) {
    const pieces = step.status === "ok" ? (expected[step.iteration] ?? []) : [];
    const said = pieces.map((one) => one.said);
    assert.equal(JSON.stringify(step.guidance), JSON.stringify(said), `guidance of iteration ${step.iteration}`);
    assert.deepEqual(
      step.action_ids,
      pieces.map(({ action_id }) => action_id),
    );
  }
}
