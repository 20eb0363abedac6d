import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";
import { tellAll, usedOnce } from "./guidance.ts";

export function guidanceNow(makeHome: MakeHome): void {
  describe('guidance with mode "now"', () => {
    const world = sharedWorld(makeHome);

    test("cuts the running step short, which is not committed and runs again with it", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const cut = await world().held.next(session_id);
      const action_id = await world().tell(session_id, "hurry", "now");
      const again = await world().held.next(session_id);
      assert.equal(cut.context.signal.aborted, true);
      assert.equal(again.context.signal.aborted, false);
      assert.deepEqual(again.frame, { ...cut.frame, guidance: ["hurry"] });
      assert.equal(again.context.ids.iteration, 0);
      cut.finish({ text: "too late" });
      again.finish({ text: "in time" });
      await usedOnce(world(), session_id, { 0: [{ action_id, said: "hurry" }] });
      assert.equal((await world().held.next(session_id)).context.ids.iteration, 1);
      assert.deepEqual(
        (await world().steps(session_id)).map(({ text, status }) => [text, status]),
        [["in time", "ok"]],
      );
    });

    test("comes after what the cut step had been given, which it keeps", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      const [first] = await tellAll(world(), session_id, ["first"]);
      assert.ok(first);
      await world().held.next(session_id);
      const waits = await tellAll(world(), session_id, ["waits"]);
      const second = await world().tell(session_id, "second", "now");
      const again = await world().held.next(session_id);
      assert.deepEqual(again.frame.guidance, ["first", "waits", "second"]);
      again.finish();
      const all = [first, ...waits, { action_id: second, said: "second" }];
      await usedOnce(world(), session_id, { 0: all });
      assert.equal((await world().untilStatus(session_id, "waiting")).iteration, 0);
    });

    test("sent ten times in a row is in one step, in order", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      await tellAll(world(), session_id, [0]);
      const rest = Array.from({ length: 10 }, (_, index) => index + 1);
      const pieces = [];
      for (const said of rest) {
        const action_id = await world().tell(session_id, said, "now");
        await world().settled(action_id);
        pieces.push({ action_id, said });
      }
      const all = [0, ...rest];
      let step = await world().held.next(session_id);
      while (step.frame.guidance?.length !== all.length) step = await world().held.next(session_id);
      assert.deepEqual(step.frame.guidance, all);
      step.finish();
      for (const { action_id } of pieces) assert.equal((await world().ended(action_id)).consumed_iteration, 0);
      assert.deepEqual((await world().steps(session_id))[0]?.guidance, all);
    });

    test("is like any other where no step runs", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      const action_id = await world().tell(session_id, "a", "now");
      const step = await world().held.next(session_id);
      await world().settled(action_id);
      assert.equal(step.context.signal.aborted, false);
      step.finish();
      await usedOnce(world(), session_id, { 0: [{ action_id, said: "a" }] });
      assert.equal(world().held.started(session_id), 1, "no step was cut short");
    });

    test("to a paused session whose step still runs cuts it short and waits for the resume", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const cut = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      const action_id = await world().tell(session_id, "a", "now");
      await world().settled(action_id);
      await world().meanwhile();
      assert.equal(cut.context.signal.aborted, true);
      assert.equal(world().held.started(session_id), 1);
      const { status, iteration, pending_guidance } = await world().session(session_id);
      assert.deepEqual(
        { status, iteration, pending_guidance },
        { status: "paused", iteration: -1, pending_guidance: ["a"] },
      );
      await world().do("agent_resume", session_id);
      (await world().held.next(session_id)).finish();
      await usedOnce(world(), session_id, { 0: [{ action_id, said: "a" }] });
    });

    test("ends the wait before a retry without using up an attempt", TIMEOUT, async () => {
      const retry = { max_attempts: 2, backoff_ms: 3_600_000 };
      const session_id = await world().create("held", { options: { retry } });
      (await world().held.next(session_id)).fail(new Error("once"));
      await world().meanwhile();
      const action_id = await world().tell(session_id, "a", "now");
      (await world().held.next(session_id)).finish();
      await usedOnce(world(), session_id, { 0: [{ action_id, said: "a" }] });
    });
  });
}
