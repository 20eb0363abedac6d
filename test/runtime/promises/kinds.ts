import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonValue } from "../../../src/domain/json.ts";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

export function kinds(makeHome: MakeHome): void {
  describe("the kind of a moniker", () => {
    const world = sharedWorld(makeHome);

    test("continuous: goes on after it says done", TIMEOUT, async () => {
      const session_id = await world().create("held");
      (await world().held.next(session_id)).finish({ done: true });
      const next = await world().held.next(session_id);
      assert.equal(next.context.ids.iteration, 1);
      assert.equal((await world().session(session_id)).status, "running");
    });

    test("finite: ends when it says done, and keeps its result", TIMEOUT, async () => {
      const session_id = await world().create("held_finite");
      (await world().held.next(session_id)).finish({ text: "first", state: { n: 1 } });
      (await world().held.next(session_id)).finish({ text: "last", state: { n: 2 }, next_step: "end", done: true });
      const session = await world().untilStatus(session_id, "done");
      assert.equal(session.result, "last");
      assert.deepEqual(session.context, { n: 2 });
      assert.equal(session.step_token, "1");
      assert.equal(session.next_step_token, "end");
      assert.equal(session.stop_reason, null);
      assert.notEqual(session.ended_at, null);
      await world().meanwhile();
      assert.equal(world().held.started(session_id), 2);
    });

    test("a result is the last text, or the data where a step has no text", TIMEOUT, async () => {
      const frames: JsonValue = [{ text: "said" }, { data: { found: 3 } }, {}];
      const session_id = await world().create("script", { params: { frames } });
      assert.deepEqual((await world().untilStatus(session_id, "done")).result, { found: 3 });
    });

    test("reactive: goes on by itself where a step says so, also after a pause and a restart", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      await world().tell(session_id, "work");
      (await world().held.next(session_id)).finish({ go_on: true });
      const second = await world().held.next(session_id);
      assert.equal(second.frame.guidance, undefined);
      await world().do("agent_pause", session_id);
      second.finish({ go_on: true });
      await world().until(session_id, ({ iteration }) => iteration === 1);
      await world().do("agent_resume", session_id);
      await world().held.next(session_id);
      await world().restart();
      (await world().held.next(session_id)).finish();
      assert.equal((await world().untilStatus(session_id, "waiting")).iteration, 2);
      const fork = await world().submit({ action_type: "agent_fork", session_id, payload: { iteration: 0 } });
      assert.equal((await world().held.next(fork.session_id)).context.ids.iteration, 1);
    });

    test("reactive: waits, steps only with guidance, waits again", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      assert.equal((await world().session(session_id)).status, "waiting");
      await world().meanwhile();
      assert.equal(world().held.started(session_id), 0, "no step without guidance");
      for (const iteration of [0, 1]) {
        await world().tell(session_id, iteration);
        const step = await world().held.next(session_id);
        assert.equal((await world().session(session_id)).status, "running");
        assert.deepEqual(step.frame.guidance, [iteration]);
        step.finish({ done: true });
        assert.equal((await world().untilStatus(session_id, "waiting")).iteration, iteration);
      }
      await world().meanwhile();
      assert.equal(world().held.started(session_id), 2);
    });

    test("reactive: steps again at once with what came while its step ran", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      await world().tell(session_id, "a");
      const step = await world().held.next(session_id);
      await world().settled(await world().tell(session_id, "b"));
      step.finish();
      const next = await world().held.next(session_id);
      assert.deepEqual(next.frame.guidance, ["b"]);
      next.finish();
      await world().untilStatus(session_id, "waiting");
      assert.equal(world().held.started(session_id), 2);
    });

    test("stop_on_done overrides the kind", TIMEOUT, async () => {
      const continuous = await world().create("held", { options: { stop_on_done: true } });
      (await world().held.next(continuous)).finish({ done: true });
      await world().untilStatus(continuous, "done");

      const reactive = await world().create("held_reactive", { options: { stop_on_done: true } });
      await world().tell(reactive, "a");
      (await world().held.next(reactive)).finish({ done: true });
      await world().untilStatus(reactive, "done");

      const finite = await world().create("held_finite", { options: { stop_on_done: false, max_steps: 2 } });
      (await world().held.next(finite)).finish({ done: true });
      (await world().held.next(finite)).finish({ done: true });
      assert.equal((await world().untilStatus(finite, "stopped", "done")).status, "stopped");
    });

    test("the step tokens of a session form a chain from the moniker's first one", TIMEOUT, async () => {
      const moniker = world().moniker(
        "finite",
        ({ step, state }, { ids }) => ({ step, next_step: `${step}>`, state, done: ids.iteration === 3 }),
        { first_step: "start/1" },
      );
      const session_id = await world().create(moniker);
      await world().untilStatus(session_id, "done");
      const tokens = (await world().steps(session_id)).map((step) => [step.step_token, step.next_step_token]);
      assert.deepEqual(tokens, [
        ["start/1", "start/1>"],
        ["start/1>", "start/1>>"],
        ["start/1>>", "start/1>>>"],
        ["start/1>>>", "start/1>>>>"],
      ]);
    });
  });
}
