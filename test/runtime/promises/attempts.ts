import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openStore } from "../../../src/store/open-store.ts";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

const QUICK_RETRY = { max_attempts: 3, backoff_ms: 1 };

/** What a step shows while it runs, and its attempts. */
export function attempts(makeHome: MakeHome): void {
  describe("a session's row", () => {
    const world = sharedWorld(makeHome);

    test("tells since when its step runs, and nothing between steps", TIMEOUT, async () => {
      const before = new Date().toISOString();
      const session_id = await world().create("held", { options: { step_interval_ms: 3_600_000 } });
      const step = await world().held.next(session_id);
      const running = await world().until(session_id, ({ step_started_at }) => step_started_at !== null);
      assert.ok((running.step_started_at ?? "") >= before, `${running.step_started_at} after ${before}`);
      assert.equal(running.iteration, -1);
      step.finish();
      const rested = await world().untilIteration(session_id, 0);
      assert.equal(rested.step_started_at, null);
      const [row] = await world().steps(session_id);
      assert.deepEqual([row?.attempts, row?.cost_usd, row?.calls], [1, 0, []]);
    });

    test("of a killed or stopped runtime shows no running step", TIMEOUT, async () => {
      const session_id = await world().create("held");
      await world().held.next(session_id);
      await world().until(session_id, ({ step_started_at }) => step_started_at !== null);
      await world().runtime.stop();
      await world().store.close();
      world().store = await openStore(world().home.url);
      assert.equal((await world().session(session_id)).step_started_at, null);
      await world().start();
      (await world().held.next(session_id)).finish();
      await world().untilIteration(session_id, 0);
    });

    test("tells when a step that failed is tried again", TIMEOUT, async () => {
      const retry = { max_attempts: 3, backoff_ms: 3_600_000 };
      const session_id = await world().create("held", { options: { retry } });
      (await world().held.next(session_id)).fail(new Error("busy"));
      const waiting = await world().until(session_id, ({ retry_at }) => retry_at !== null);
      assert.ok(Date.parse(waiting.retry_at ?? "") > Date.now() + 1_000_000);
      assert.equal(waiting.status, "running");
      await world().tell(session_id, "now", "now");
      (await world().held.next(session_id)).finish();
      const { retry_at } = await world().untilIteration(session_id, 0);
      assert.equal(retry_at, null);
    });

    test(
      "and its steps count every attempt: those that failed, were interrupted, and were resumed",
      TIMEOUT,
      async () => {
        const session_id = await world().create("held_finite", { options: { retry: QUICK_RETRY } });
        (await world().held.next(session_id)).finish();
        (await world().held.next(session_id)).fail(new Error("once"));
        await world().held.next(session_id);
        await world().tell(session_id, "hurry", "now");
        (await world().held.next(session_id)).fail(new Error("twice"));
        (await world().held.next(session_id)).fail(new Error("three times"));
        await world().untilStatus(session_id, "error");
        await world().do("agent_resume", session_id);
        (await world().held.next(session_id)).finish({ done: true });
        await world().untilStatus(session_id, "done");
        const counted = (await world().steps(session_id)).map((step) => `${step.status} ${step.attempts}`);
        assert.deepEqual(counted, ["ok 1", "error 4", "ok 5"]);
      },
    );
  });
}
