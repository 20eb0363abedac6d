import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { matchesGlob } from "../../../src/domain/step-globs.ts";
import { type MakeHome, sharedWorld, TIMEOUT, World } from "../runtime-fixture.ts";

/** What holds a session before its next step until a person resumes it. */
export function holding(makeHome: MakeHome): void {
  describe("a breakpoint", () => {
    const world = sharedWorld(makeHome);
    const options = { hold_before: ["act/*/deploy*", "never"], retry: { max_attempts: 2, backoff_ms: 1 } };

    test("holds the session before a step that fits, and a resume runs that step", TIMEOUT, async () => {
      const session_id = await world().create("held", { options });
      (await world().held.next(session_id)).finish({ next_step: "act/7/deploy-it" });
      const held = await world().untilStatus(session_id, "paused");
      assert.deepEqual(held.pause_reason, { kind: "breakpoint", step_token: "act/7/deploy-it" });
      assert.deepEqual([held.iteration, world().held.started(session_id)], [0, 1]);
      const needing = await world().store.listSessions({ needs_person: true, limit: 500, offset: 0 });
      assert.ok(needing.some((session) => session.session_id === session_id));
      await world().do("agent_resume", session_id);
      const step = await world().held.next(session_id);
      assert.equal(step.frame.step, "act/7/deploy-it");
      step.fail(new Error("no"));
      // The person released this step, however often it is attempted.
      (await world().held.next(session_id)).finish({ next_step: "act/8/deploy" });
      const again = await world().untilStatus(session_id, "paused");
      assert.deepEqual(again.pause_reason, { kind: "breakpoint", step_token: "act/8/deploy" });
    });

    test("stays passed after a restart, and holds a session that a timer or guidance woke", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive", { options: { hold_before: ["1", "2"] } });
      await world().tell(session_id, "begin");
      const until = new Date(Date.now() + 50).toISOString();
      (await world().held.next(session_id)).finish({ next_step: "1", wait: { until } });
      assert.equal((await world().untilStatus(session_id, "paused")).pause_reason?.kind, "breakpoint");
      await world().do("agent_resume", session_id);
      const step = await world().held.next(session_id);
      assert.equal(step.frame.step, "1");
      await world().restart();
      const once = await world().held.next(session_id);
      assert.equal(once.frame.step, "1");
      once.finish({ next_step: "2" });
      await world().untilStatus(session_id, "waiting");
      await world().tell(session_id, "and now");
      await world().untilStatus(session_id, "paused");
      await world().do("agent_resume", session_id);
      assert.deepEqual((await world().held.next(session_id)).frame.guidance, ["and now"]);
    });

    test("fits tokens as paths: a star within a part, two for any parts", () => {
      const fitting = ["act/*/deploy*", "**/deploy-1", "act/**", "act/?/*", "**", "act/1/deploy-1"];
      for (const pattern of fitting) assert.ok(matchesGlob(pattern, "act/1/deploy-1"), pattern);
      const others = ["act/*", "deploy*", "act/1/deploy", "*", "act/??/*", "act/**/x", ""];
      for (const pattern of others) assert.ok(!matchesGlob(pattern, "act/1/deploy-1"), pattern);
      assert.ok(!matchesGlob("*a".repeat(2000), "a".repeat(1999)));
    });
  });

  describe("a fork", () => {
    const world = sharedWorld(makeHome);

    test("has another state, other params, options and another moniker where they are given", TIMEOUT, async () => {
      const session_id = await world().create("count", { params: { to: 3 }, options: { max_steps: 50 } });
      await world().untilStatus(session_id, "done");
      const fork = (payload: object) =>
        world().runtime.queue.submit({ action_type: "agent_fork", session_id, payload });
      const other = await fork({ iteration: 1, state: { n: 5 }, params: { to: 9 }, options: { max_steps: 2 } });
      assert.ok(other.kind === "accepted", JSON.stringify(other));
      const stopped = await world().untilStatus(other.session_id, "stopped");
      assert.deepEqual(stopped.options, { stop_on_done: true, max_steps: 2 });
      assert.deepEqual([stopped.params, stopped.context["n"], stopped.iteration], [{ to: 9 }, 7, 3]);
      const held = await fork({ iteration: 1, moniker: "held", params: { any: 1 } });
      assert.ok(held.kind === "accepted");
      const step = await world().held.next(held.session_id);
      assert.deepEqual([step.frame.state["n"], step.context.params], [1, { any: 1 }]);
      const wrong = await fork({ iteration: 1, params: { to: "x" } });
      assert.deepEqual(wrong.kind === "invalid" && wrong.errors.map(({ path }) => path), ["params.to"]);
      assert.equal((await fork({ iteration: 1, moniker: "no such" })).kind, "invalid");
    });
  });

  test("a runtime that starts held runs nothing that was there until it is released", TIMEOUT, async () => {
    await using world = await World.open(makeHome);
    const create = (agent_id: string) => world.create("held", { agent_id });
    const [first, second, third] = [await create("a"), await create("b"), await create("b")];
    for (const id of [first, second, third]) await world.held.next(id);
    const timed = await world.create("held");
    const until = new Date(Date.now() + 500).toISOString();
    (await world.held.next(timed)).finish({ wait: { until } });
    await world.untilIteration(timed, 0);
    const started = (id: string) => world.held.started(id);
    await world.runtime.stop();
    // It is due later, unless the machine is slow.
    const woken = started(timed);
    await world.restart({ start_held: true });
    assert.equal(world.runtime.describe().holds_sessions, true);
    const fresh = await world.create("held", { agent_id: "fresh" });
    await world.held.next(fresh);
    await world.do("agent_pause", third);
    await world.untilStatus(timed, "running");
    await world.meanwhile();
    assert.deepEqual([first, second, third, timed].map(started), [1, 1, 1, woken]);
    assert.equal(await world.runtime.release({ session_ids: [first] }), 1);
    await world.held.next(first);
    assert.equal(await world.runtime.release({ agent_id: "b" }), 1);
    await world.held.next(second);
    await world.do("agent_resume", third);
    await world.held.next(third);
    assert.equal(started(timed), woken);
    await world.runtime.release({ all: true });
    for (let step = 1; step <= woken; step++) await world.held.next(timed);
    assert.equal(world.runtime.describe().holds_sessions, false);
  });
}
