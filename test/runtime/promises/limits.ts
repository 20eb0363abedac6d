import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

const HOUR_MS = 3_600_000;

export function limits(makeHome: MakeHome): void {
  describe("limits", () => {
    const world = sharedWorld(makeHome);
    /** A continuous moniker whose steps each report token usage in parts. */
    const spender = (...parts: number[]) =>
      world().moniker("continuous", ({ step, state }, { ids, emit }) => {
        for (const tokens of parts) emit({ kind: "usage", tokens });
        return { step, next_step: String(ids.iteration + 1), state, done: false };
      });

    test("max_steps: exactly that many steps, then stopped with the reason", TIMEOUT, async () => {
      const session_id = await world().create("joke", { options: { max_steps: 4, step_interval_ms: 0 } });
      const session = await world().untilStatus(session_id, "stopped");
      assert.equal(session.stop_reason, "max_steps");
      assert.equal(session.iteration, 3);
      assert.notEqual(session.ended_at, null);
      assert.equal((await world().steps(session_id)).length, 4);
    });

    test("max_steps: a task that is done with its last step is done", TIMEOUT, async () => {
      const session_id = await world().create("count", { params: { to: 2 }, options: { max_steps: 3 } });
      const session = await world().untilStatus(session_id, "done", "stopped");
      assert.deepEqual([session.status, session.stop_reason], ["done", null]);
    });

    test("max_steps: a paused session that reaches it with the step that ran is stopped", TIMEOUT, async () => {
      const session_id = await world().create("held", { options: { max_steps: 1 } });
      const step = await world().held.next(session_id);
      await world().do("agent_pause", session_id);
      step.finish();
      assert.equal((await world().untilStatus(session_id, "stopped")).stop_reason, "max_steps");
    });

    test(
      "max_cost_usd: the step that reaches it is kept and is the last; a higher one lets it go on",
      TIMEOUT,
      async () => {
        const moniker = world().moniker("continuous", ({ step, state }, { emit }) => {
          emit({ kind: "usage", tokens: 1, cost_usd: 0.1 });
          return { step, next_step: step, state, done: false };
        });
        const session_id = await world().create(moniker, { options: { max_cost_usd: 0.3, step_interval_ms: 0 } });
        const session = await world().untilStatus(session_id, "stopped");
        assert.deepEqual([session.stop_reason, session.iteration, session.cost_usd], ["max_cost_usd", 2, 0.3]);
        const { sessions } = await world().store.summarizeSessions({ needs_person: true, limit: 100, offset: 0 });
        assert.ok(
          sessions.some((summary) => summary.session_id === session_id),
          "a person is to look at it",
        );
        await world().do("agent_resume", session_id, { options: { max_cost_usd: 0.5 } });
        const later = await world().until(session_id, ({ status, iteration }) => status === "stopped" && iteration > 2);
        assert.deepEqual([later.stop_reason, later.cost_usd], ["max_cost_usd", 0.5]);
      },
    );

    test("max_tokens: the step that reaches it is kept and is the last", TIMEOUT, async () => {
      const session_id = await world().create(spender(30, 10), { options: { max_tokens: 100 } });
      const session = await world().untilStatus(session_id, "stopped");
      assert.equal(session.stop_reason, "max_tokens");
      assert.equal(session.tokens_used, 120);
      assert.deepEqual(
        (await world().steps(session_id)).map(({ tokens_used }) => tokens_used),
        [40, 40, 40],
      );
    });

    test("tokens of failed attempts count too, once", TIMEOUT, async () => {
      let calls = 0;
      const moniker = world().moniker("continuous", ({ step, state }, { ids, emit }) => {
        calls += 1;
        emit({ kind: "usage", tokens: 10 });
        if (calls === 1) throw new Error("once");
        return { step, next_step: String(ids.iteration + 1), state, done: false };
      });
      const options = { max_steps: 2, retry: { max_attempts: 2, backoff_ms: 1 } };
      const session_id = await world().create(moniker, { options });
      assert.equal((await world().untilStatus(session_id, "stopped")).tokens_used, 30);
      assert.deepEqual(
        (await world().steps(session_id)).map(({ tokens_used }) => tokens_used),
        [20, 10],
      );
    });

    test("values that are no token counts do not spoil the sum", TIMEOUT, async () => {
      const parts = [5, Number.NaN, -3, Number.POSITIVE_INFINITY, "7" as unknown as number];
      const session_id = await world().create(spender(...parts), { options: { max_steps: 2 } });
      const session = await world().untilStatus(session_id, "stopped", "error");
      const { tokens_used } = session;
      assert.ok(Number.isSafeInteger(tokens_used) && tokens_used >= 0, `${tokens_used} tokens`);
      for (const step of await world().steps(session_id)) {
        assert.ok(Number.isSafeInteger(step.tokens_used) && step.tokens_used >= 0, `${step.tokens_used} tokens`);
      }
    });

    test("a session that a limit stopped goes on where options lift the limit", TIMEOUT, async () => {
      const session_id = await world().create("joke", { options: { max_steps: 2, step_interval_ms: 0 } });
      await world().untilStatus(session_id, "stopped");
      const alone = await world().act("agent_resume", session_id);
      assert.deepEqual([alone.outcome, /max_steps/.test(alone.error ?? "")], ["rejected", true]);
      const other = await world().act("agent_resume", session_id, { options: { max_tokens: 5 } });
      assert.equal(other.outcome, "rejected");
      assert.equal((await world().act("agent_resume", session_id, { options: { max_steps: 5 } })).outcome, "ok");
      await world().untilIteration(session_id, 4);
      const again = await world().untilStatus(session_id, "stopped");
      assert.deepEqual([again.stop_reason, again.options.max_steps], ["max_steps", 5]);
      assert.deepEqual(
        (await world().steps(session_id)).map(({ iteration }) => iteration),
        [0, 1, 2, 3, 4],
      );
    });

    test("a session that a limit stopped can be ended for good", TIMEOUT, async () => {
      const session_id = await world().create("joke", { options: { max_steps: 1 } });
      await world().untilStatus(session_id, "stopped");
      assert.equal((await world().act("agent_destroy", session_id)).outcome, "ok");
      assert.equal((await world().session(session_id)).stop_reason, "destroyed");
      for (const action_type of ["agent_resume", "agent_destroy"] as const)
        assert.equal((await world().act(action_type, session_id, {})).outcome, "rejected");
    });

    test("max_runtime_s: ends a session between its steps", TIMEOUT, async () => {
      const session_id = await world().create("joke", { options: { max_runtime_s: 1, step_interval_ms: 20 } });
      const session = await world().untilStatus(session_id, "stopped");
      assert.equal(session.stop_reason, "max_runtime_s");
      assert.ok(session.iteration > 0);
      assertAged(session, 1);
    });

    test("max_runtime_s: ends a session in mid-step, whose step is not committed", TIMEOUT, async () => {
      const session_id = await world().create("held", { options: { max_runtime_s: 1 } });
      (await world().held.next(session_id)).finish();
      const cut = await world().held.next(session_id);
      const session = await world().untilStatus(session_id, "stopped");
      assert.equal(session.stop_reason, "max_runtime_s");
      assert.equal(cut.context.signal.aborted, true);
      assert.equal(session.iteration, 0);
      cut.finish({ text: "too late" });
      await world().meanwhile();
      assert.equal((await world().steps(session_id)).length, 1);
      assertAged(session, 1);
    });

    test("max_runtime_s: ends a session in the interval between its steps", TIMEOUT, async () => {
      const session_id = await world().create("joke", { options: { max_runtime_s: 1, step_interval_ms: HOUR_MS } });
      const session = await world().untilStatus(session_id, "stopped");
      assert.equal(session.stop_reason, "max_runtime_s");
      assert.equal(session.iteration, 0);
    });

    test("max_runtime_s: ends a session in the wait before a retry", TIMEOUT, async () => {
      const retry = { max_attempts: 5, backoff_ms: HOUR_MS };
      const session_id = await world().create("count", {
        params: { to: 1, fail_at: 0 },
        options: { max_runtime_s: 0.5, retry },
      });
      assert.equal((await world().untilStatus(session_id, "stopped")).stop_reason, "max_runtime_s");
    });

    test("step_timeout_s: a step that takes longer is cut, tried again, and fails in the end", TIMEOUT, async () => {
      const options = { step_timeout_s: 0.03, retry: { max_attempts: 3, backoff_ms: 1 } };
      const session_id = await world().create("held", { options });
      const attempts = [await world().held.next(session_id)];
      attempts.push(await world().held.next(session_id), await world().held.next(session_id));
      const session = await world().untilStatus(session_id, "error");
      assert.match(session.last_error ?? "", /timeout/);
      assert.deepEqual(
        attempts.map(({ context }) => context.signal.aborted),
        [true, true, true],
      );
      assert.equal(world().held.started(session_id), 3);
      assert.equal(session.iteration, -1);
    });

    test("step_timeout_s: every step and every attempt has its own time", TIMEOUT, async () => {
      const session_id = await world().create("count", {
        params: { to: 9, delay_ms: 60 },
        options: { step_timeout_s: 0.5 },
      });
      assert.equal((await world().untilStatus(session_id, "done", "error")).status, "done");
    });

    test("step_interval_ms: that much time is between two steps", TIMEOUT, async () => {
      const session_id = await world().create("count", { params: { to: 4 }, options: { step_interval_ms: 40 } });
      await world().untilStatus(session_id, "done");
      const times = (await world().steps(session_id)).map(({ created_at }) => Date.parse(created_at));
      for (const [index, time] of times.slice(1).entries()) {
        const gap = time - (times[index] as number);
        assert.ok(gap >= 38, `${gap} ms between steps ${index} and ${index + 1}`);
      }
    });
  });
}

function assertAged(
  { created_at, ended_at }: { created_at: string; ended_at: string | null },
  atLeast_s: number,
): void {
  const age = (Date.parse(ended_at ?? "") - Date.parse(created_at)) / 1000;
  assert.ok(age >= atLeast_s - 0.005, `it was stopped after ${age} s`);
}
