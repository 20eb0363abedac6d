import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

export function order(makeHome: MakeHome): void {
  describe("actions", () => {
    const world = sharedWorld(makeHome);

    test("of one session are taken by urgency, then arrival", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const first = await world().held.next(session_id);
      await world().runtime.stop();
      const urgencies = [0, 5, 0, 9, 5, 1, 9, 0];
      for (const [index, urgency] of urgencies.entries()) {
        const guidance = `${urgency}/${index}`;
        await world().submit({ action_type: "agent_interrupt", session_id, payload: { guidance }, urgency });
      }
      first.finish();
      await world().restart();
      await world().until(session_id, ({ pending_guidance }) => pending_guidance.length === urgencies.length);
      const expected = ["9/3", "9/6", "5/1", "5/4", "1/5", "0/0", "0/2", "0/7"];
      assert.deepEqual((await world().session(session_id)).pending_guidance, expected);
    });

    test("a thousand of one session keep their order, and each is in exactly one step", TIMEOUT, async () => {
      const session_id = await world().create("echo");
      const sent = Array.from({ length: 1000 }, (_, index) => index);
      const ids = await Promise.all(sent.map((index) => world().tell(session_id, index)));
      await world().ended(ids.at(-1) ?? "");
      const steps = await world().steps(session_id);
      assert.deepEqual(
        steps.flatMap(({ guidance }) => guidance),
        sent,
      );
      assert.deepEqual(
        steps.flatMap(({ action_ids }) => action_ids),
        ids,
      );
      const iterationOf = new Map(
        steps.flatMap(({ action_ids, iteration }) => action_ids.map((id) => [id, iteration])),
      );
      for (const action of await world().actions(session_id)) {
        if (action.action_type === "agent_create") continue;
        assert.equal(action.receipt, "consumed");
        assert.equal(action.consumed_iteration, iterationOf.get(action.action_id));
      }
    });

    test("of one session are settled one at a time, in order", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      const pauses = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? "agent_pause" : "agent_resume"));
      const accepted = await Promise.all(pauses.map((action_type) => world().submit({ action_type, session_id })));
      const settled = await Promise.all(accepted.map(({ action_id }) => world().settled(action_id)));
      for (const { outcome, error } of settled) assert.equal(outcome, "ok", `out of order: ${error}`);
      const times = settled.map(({ processed_at }) => processed_at ?? "");
      assert.deepEqual(times, times.toSorted());
      assert.equal((await world().session(session_id)).status, "waiting");
    });

    test("of one session that are sent side by side keep their order, whatever they are", TIMEOUT, async () => {
      const controls = Array.from({ length: 40 }, (_, at) => ["agent_pause", "agent_input", "agent_resume"][at % 3]);
      for (const before of [[], ["agent_pause"], controls]) {
        const session_id = await world().create("echo");
        await world().ended(await world().tell(session_id, "hello"));
        const types = [...before, "agent_input", "agent_destroy", "agent_input"];
        const accepted = await Promise.all(types.map((action_type) => world().submit({ action_type, session_id })));
        const settled = await Promise.all(accepted.map(({ action_id }) => world().settled(action_id)));
        const outcomes = settled.map(({ outcome }) => outcome);
        assert.deepEqual(outcomes, [...types.slice(1).map(() => "ok"), "rejected"]);
      }
    });

    test("that control a session at work are written together with what they do", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const step = await world().held.next(session_id);
      const heard = new AbortController();
      const versions = new Map<string, boolean[]>();
      const listening = (async () => {
        for await (const event of world().store.follow({ session_id }, heard.signal)) {
          if (event.kind !== "action") continue;
          const { action_id, processed } = event.action;
          versions.set(action_id, [...(versions.get(action_id) ?? []), processed]);
        }
      })();
      const ids: string[] = [];
      for (const action_type of ["agent_pause", "agent_resume", "agent_destroy"]) {
        const { action_id } = await world().submit({ action_type, session_id });
        // Without waiting: once a request is accepted, its effect is visible.
        assert.equal((await world().store.getAction(action_id))?.outcome, "ok", action_type);
        ids.push(action_id);
      }
      step.finish();
      await world().untilStatus(session_id, "stopped");
      await world().meanwhile();
      heard.abort();
      await listening;
      for (const id of ids) assert.deepEqual(versions.get(id), [true]);
    });

    test("of one session do not wait for another session's step", TIMEOUT, async () => {
      const sessions = await Promise.all(Array.from({ length: 100 }, () => world().create("held")));
      const steps = await Promise.all(sessions.map((id) => world().held.next(id)));
      assert.equal(steps.length, 100, "all of them run at the same time");
      const paused = await Promise.all(sessions.map((id) => world().act("agent_pause", id)));
      for (const { outcome } of paused) assert.equal(outcome, "ok");
      for (const step of steps) step.finish();
      await Promise.all(sessions.map((id) => world().untilIteration(id, 0)));
      for (const id of sessions) assert.equal(world().held.started(id), 1);
    });

    test("never make two steps of one session run at once", TIMEOUT, async () => {
      let running = 0;
      let most = 0;
      const moniker = world().moniker("continuous", async ({ step, state }, { ids }) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return { step, next_step: String(ids.iteration + 1), state, done: false };
      });
      const session_id = await world().create(moniker, { options: { max_steps: 300 } });
      const controls = ["agent_pause", "agent_resume", "agent_interrupt", "agent_input"];
      const settlements: Promise<string>[] = [];
      for (let index = 0; index < 100; index += 1) {
        const action_type = controls[index % controls.length];
        const { action_id } = await world().submit({ action_type, session_id, payload: { guidance: index } });
        settlements.push(
          world()
            .settled(action_id)
            .then(({ outcome }) => outcome ?? "none"),
        );
      }
      const outcomes = await Promise.all(settlements);
      assert.ok(outcomes.includes("ok"));
      await world().untilStatus(session_id, "stopped");
      assert.equal(most, 1);
      assert.deepEqual(
        (await world().steps(session_id)).map(({ iteration }) => iteration),
        Array.from({ length: 300 }, (_, index) => index),
      );
    });
  });
}
