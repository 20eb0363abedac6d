import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Session } from "../../../src/domain/session.ts";
import { StepError } from "../../../src/monikers/moniker.ts";
import { type MakeHome, sharedWorld, TIMEOUT, World } from "../runtime-fixture.ts";

const HOUR_MS = 3_600_000;

export function destroying(makeHome: MakeHome): void {
  describe("destroy", () => {
    const world = sharedWorld(makeHome, { destroy_grace_ms: 30 });
    const destroyed = async (session_id: string): Promise<Session> => {
      const action = await world().do("agent_destroy", session_id);
      assert.equal(action.receipt, "delivered");
      const session = await world().untilStatus(session_id, "stopped");
      assert.equal(session.stop_reason, "destroyed");
      assert.notEqual(session.ended_at, null);
      return session;
    };

    test("ends a session that waits", TIMEOUT, async () => {
      const session_id = await world().create("echo");
      await destroyed(session_id);
    });

    test("ends a session that is paused, and starts no step of it", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      step.finish();
      await world().untilIteration(session_id, 0);
      await destroyed(session_id);
      assert.equal(world().held.started(session_id), 1);
    });

    test("ends a session in error", TIMEOUT, async () => {
      const session_id = await world().create("held");
      (await world().held.next(session_id)).fail(new StepError("no", "never", { retryable: false }));
      await world().untilStatus(session_id, "error");
      const session = await destroyed(session_id);
      assert.match(session.last_error ?? "", /never/, "why it had failed can still be read");
    });

    test("ends a session in the interval between two steps, or in the wait before a retry", TIMEOUT, async () => {
      const interval = await world().create("held", { options: { step_interval_ms: HOUR_MS } });
      (await world().held.next(interval)).finish();
      await world().untilIteration(interval, 0);
      const retry = { max_attempts: 9, backoff_ms: HOUR_MS };
      const failing = await world().create("held", { options: { retry } });
      (await world().held.next(failing)).fail(new Error("once"));
      await world().meanwhile();
      await destroyed(interval);
      await destroyed(failing);
      assert.deepEqual([world().held.started(interval), world().held.started(failing)], [1, 1]);
    });

    test("ends a session that waits for its turn to step", TIMEOUT, async () => {
      await using narrow = await World.open(makeHome, { max_running_steps: 1 });
      await narrow.held.next(await narrow.create("held"));
      const session_id = await narrow.create("held");
      await narrow.do("agent_destroy", session_id);
      assert.equal((await narrow.untilStatus(session_id, "stopped")).iteration, -1);
      assert.equal(narrow.held.started(session_id), 0);
    });

    test("ends a step that ignores its signal once the grace is over, and does not keep it", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      const asked = performance.now();
      const session = await destroyed(session_id);
      assert.ok(performance.now() - asked >= 29, "the grace was given");
      assert.equal(step.context.signal.aborted, true);
      step.finish({ text: "too late" });
      await world().meanwhile();
      assert.deepEqual(await world().steps(session_id), []);
      assert.deepEqual(await world().session(session_id), session);
    });

    test("of a session that is done or stopped is rejected", TIMEOUT, async () => {
      const done = await world().create("count", { params: { to: 0 } });
      await world().untilStatus(done, "done");
      const stopped = await world().create("echo");
      await destroyed(stopped);
      for (const session_id of [done, stopped]) {
        const before = await world().session(session_id);
        const action = await world().act("agent_destroy", session_id);
        assert.equal(action.outcome, "rejected");
        assert.match(action.error ?? "", new RegExp(before.status));
        assert.deepEqual(await world().session(session_id), before);
      }
    });
  });

  describe("destroy with a long grace", () => {
    const world = sharedWorld(makeHome, { destroy_grace_ms: HOUR_MS });

    test("keeps a step that finishes in time, and then stops", TIMEOUT, async () => {
      const session_id = await world().create("held_finite");
      const step = await world().held.next(session_id);
      await world().do("agent_destroy", session_id);
      const { status, stop_reason } = await world().session(session_id);
      assert.deepEqual({ status, stop_reason }, { status: "stopping", stop_reason: "destroyed" });
      assert.equal(step.context.signal.aborted, false);
      step.finish({ text: "kept", done: true });
      const session = await world().untilStatus(session_id, "stopped", "done");
      assert.deepEqual([session.status, session.stop_reason, session.iteration], ["stopped", "destroyed", 0]);
      assert.deepEqual(
        (await world().steps(session_id)).map(({ text }) => text),
        ["kept"],
      );
      assert.equal(world().held.started(session_id), 1);
    });

    test("of a session whose step fails in time stops it and leaves no error", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      await world().do("agent_destroy", session_id);
      step.fail(new Error("in the end"));
      const session = await world().untilStatus(session_id, "stopped", "error");
      assert.deepEqual([session.status, session.stop_reason, session.last_error], ["stopped", "destroyed", null]);
      assert.equal(world().held.started(session_id), 1);
    });

    test("of a paused session whose step still runs keeps that step", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      await world().do("agent_destroy", session_id);
      step.finish({ text: "kept" });
      assert.equal((await world().untilStatus(session_id, "stopped")).iteration, 0);
    });

    test("once is enough: any other request to a stopping session is rejected", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      await world().do("agent_destroy", session_id);
      for (const action_type of ["agent_destroy", "agent_pause", "agent_resume"] as const) {
        const action = await world().act(action_type, session_id);
        assert.equal(action.outcome, "rejected");
        assert.match(action.error ?? "", /stopping/);
      }
      step.finish();
      await world().untilStatus(session_id, "stopped");
    });
  });
}
