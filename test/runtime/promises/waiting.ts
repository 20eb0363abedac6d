import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FrameOut } from "../../../src/domain/step-frame.ts";
import { repetitions } from "../../repetitions.ts";
import { type MakeHome, sharedWorld, TIMEOUT, World } from "../runtime-fixture.ts";

const HOUR_MS = 3_600_000;
const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();

/** What a session does after a step that returned `wait`. */
export function waiting(makeHome: MakeHome): void {
  describe("a session whose step said to wait", () => {
    const world = sharedWorld(makeHome);

    const restingAfter = async (moniker: string, out: Partial<FrameOut>): Promise<string> => {
      const session_id = await world().create(moniker);
      if (moniker === "held_reactive") await world().tell(session_id, "begin");
      (await world().held.next(session_id)).finish(out);
      await world().untilStatus(session_id, "waiting");
      return session_id;
    };

    for (const moniker of ["held", "held_finite", "held_reactive"])
      test(`rests until it is told something: ${moniker}`, TIMEOUT, async () => {
        const session_id = await restingAfter(moniker, { wait: {} });
        const { wake_at, question, rests_since } = await world().session(session_id);
        assert.deepEqual([wake_at, question], [null, null]);
        assert.ok(rests_since);
        await world().tell(session_id, "go on");
        const step = await world().held.next(session_id);
        assert.deepEqual(step.frame.guidance, ["go on"]);
        assert.equal((await world().session(session_id)).rests_since, null);
        step.finish({ done: true });
        await world().untilIteration(session_id, 1);
      });

    test("continues at its time without guidance, never earlier", TIMEOUT, async () => {
      const until = inMs(300);
      const session_id = await restingAfter("held_reactive", { wait: { until } });
      assert.equal((await world().session(session_id)).wake_at, until);
      const step = await world().held.next(session_id);
      assert.ok(Date.now() >= Date.parse(until), "not early");
      assert.equal(step.frame.guidance, undefined);
      const session = await world().session(session_id);
      assert.deepEqual([session.status, session.wake_at], ["running", null]);
      step.finish();
      await world().untilStatus(session_id, "waiting");
      assert.equal((await world().session(session_id)).wake_at, null);
    });

    test("continues at once if the time is past, and takes a time of any zone", TIMEOUT, async () => {
      const session_id = await world().create("held");
      (await world().held.next(session_id)).finish({ wait: { until: "2020-02-29T12:00:00+02:00" } });
      const step = await world().held.next(session_id);
      assert.equal(step.context.ids.iteration, 1);
      step.finish({ wait: { until: "2999-01-01T00:00:00+01:00" } });
      const { wake_at } = await world().untilStatus(session_id, "waiting");
      assert.equal(wake_at, "2998-12-31T23:00:00.000Z");
    });

    test("continues with the first guidance, and its time then wakes nobody", TIMEOUT, async () => {
      const session_id = await restingAfter("held", { wait: { until: inMs(400) } });
      await world().tell(session_id, "early");
      (await world().held.next(session_id)).finish({ wait: {} });
      const rested = await world().until(session_id, (row) => row.iteration === 1 && row.status === "waiting");
      assert.equal(rested.wake_at, null);
      const other = await restingAfter("held", { wait: { until: inMs(600) } });
      await world().held.next(other);
      assert.equal(world().held.started(session_id), 2);
    });

    test("does not wait for what came while its step ran", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      await world().delivered(await world().tell(session_id, "meanwhile"));
      step.finish({ wait: { until: inMs(HOUR_MS) } });
      const next = await world().held.next(session_id);
      assert.deepEqual(next.frame.guidance, ["meanwhile"]);
      const { wake_at, rests_since } = await world().session(session_id);
      assert.deepEqual([wake_at, rests_since], [null, null]);
    });

    test("waits on when it is resumed after a pause, and goes on if its time came meanwhile", TIMEOUT, async () => {
      const waits = await restingAfter("held", { wait: {} });
      await world().do("agent_pause", waits);
      await world().do("agent_resume", waits);
      assert.equal((await world().session(waits)).status, "waiting");
      const timed = await restingAfter("held", { wait: { until: inMs(250) } });
      await world().do("agent_pause", timed);
      const later = await restingAfter("held", { wait: { until: inMs(500) } });
      await world().held.next(later);
      assert.equal((await world().session(timed)).status, "paused");
      assert.equal(world().held.started(timed), 1);
      await world().do("agent_resume", timed);
      assert.equal((await world().held.next(timed)).context.ids.iteration, 1);
    });

    test("ends by done or destroy like any other, and then waits for nothing", TIMEOUT, async () => {
      const session_id = await world().create("held_finite");
      (await world().held.next(session_id)).finish({ done: true, wait: { until: inMs(HOUR_MS) }, ask: { text: "?" } });
      const done = await world().untilStatus(session_id, "done");
      assert.deepEqual([done.wake_at, done.question, done.rests_since], [null, null, null]);
      const doomed = await restingAfter("held", { wait: { until: inMs(HOUR_MS) } });
      await world().do("agent_destroy", doomed);
      assert.equal((await world().untilStatus(doomed, "stopped")).wake_at, null);
    });

    test("that a limit stopped waits on once the limit is lifted", TIMEOUT, async () => {
      const session_id = await world().create("held", { options: { max_steps: 1 } });
      (await world().held.next(session_id)).finish({ ask: { text: "more?" }, wait: { until: inMs(HOUR_MS) } });
      await world().untilStatus(session_id, "stopped");
      await world().do("agent_resume", session_id, { options: { max_steps: 2 } });
      const { status, question, wake_at } = await world().session(session_id);
      assert.deepEqual([status, question?.text, typeof wake_at], ["waiting", "more?", "string"]);
    });

    test("and a bad time or question ends as a bad frame with the reason", TIMEOUT, async () => {
      for (const [out, reason] of [
        [{ wait: { until: "tomorrow" } }, /wait\.until/],
        [{ ask: { text: "" } }, /ask\.text/],
        [{ ask: { text: "?", choices: [] } }, /ask\.choices/],
        [{ ask: { text: "?", schema: { type: "object", properties: { a: { type: "object" } } } } }, /ask\.schema/],
      ] as [Partial<FrameOut>, RegExp][]) {
        const session_id = await world().create("held");
        (await world().held.next(session_id)).finish(out);
        const { last_error } = await world().untilStatus(session_id, "error");
        assert.match(last_error ?? "", reason);
      }
    });

    test("is forked as it was: the fork waits and asks by itself", TIMEOUT, async () => {
      const session_id = await restingAfter("held", { ask: { text: "which?" }, wait: { until: inMs(HOUR_MS) } });
      const { question, wake_at } = await world().session(session_id);
      const fork = await world().submit({ action_type: "agent_fork", session_id, payload: { iteration: 0 } });
      const copy = await world().session(fork.session_id);
      assert.deepEqual([copy.status, copy.question?.text, copy.wake_at], ["waiting", "which?", wake_at]);
      assert.notEqual(copy.question?.question_id, question?.question_id);
      const payload = { iteration: 0, guidance: "this one" };
      const guided = await world().submit({ action_type: "agent_fork", session_id, payload });
      assert.deepEqual((await world().held.next(guided.session_id)).frame.guidance, ["this one"]);
    });
  });

  test("timers fire after restarts: those that are past at once, each once, none early", TIMEOUT, async () => {
    await using world = await World.open(makeHome);
    const fired = new Map<string, number[]>();
    const timed = world.moniker("finite", ({ step, state }, { ids }): FrameOut => {
      const until = state["until"];
      if (typeof until === "string") {
        const late = Date.now() - Date.parse(until);
        fired.set(ids.session_id, [...(fired.get(ids.session_id) ?? []), late]);
        return { step, next_step: "end", state: {}, done: true };
      }
      const at = new Date(Date.now() + 20 + Math.random() * 1500).toISOString();
      return { step, next_step: "fired", state: { until: at }, done: false, wait: { until: at } };
    });
    const count = repetitions("EVERSTEP_TIMERS", { few: 40, many: 1000 });
    const restarts = repetitions("EVERSTEP_TIMER_RESTARTS", { few: 2, many: 10 });
    const ids: string[] = [];
    for (let round = 0; round < restarts; round += 1) {
      const some = Array.from({ length: Math.ceil(count / restarts) }, () => world.create(timed));
      ids.push(...(await Promise.all(some)));
      await Promise.all(ids.slice(-3).map((id) => world.untilIteration(id, 0)));
      await world.restart();
    }
    for (const id of ids) await world.untilStatus(id, "done");
    for (const id of ids) {
      assert.equal(fired.get(id)?.length, 1, `timer of ${id}`);
      assert.equal((await world.session(id)).iteration, 1);
    }
    assert.ok(Math.min(...[...fired.values()].flat()) >= 0, "none early");
  });
}
