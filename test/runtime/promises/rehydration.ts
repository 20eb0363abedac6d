import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { changeStatus } from "../../../src/domain/session.ts";
import { StepError } from "../../../src/monikers/moniker.ts";
import { anAction, aSession, mustCommit, WORKER } from "../../store/fixtures.ts";
import { type MakeHome, TIMEOUT, World } from "../runtime-fixture.ts";

export function rehydration(makeHome: MakeHome): void {
  describe("after a restart", () => {
    test("sessions that wait, are paused or failed are as they were", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const waiting = await world.create("held_reactive");
      await world.tell(waiting, "a");
      (await world.held.next(waiting)).finish({ state: { heard: ["a"] }, text: "yes" });
      await world.untilStatus(waiting, "waiting");
      const paused = await world.create("held");
      (await world.held.next(paused)).finish({ next_step: "two", state: { at: 1 } });
      const last = await world.held.next(paused);
      await world.do("agent_pause", paused);
      last.finish({ next_step: "three", state: { at: 2 } });
      await world.untilIteration(paused, 1);
      await world.settled(await world.tell(paused, "waits"));
      const failed = await world.create("held");
      (await world.held.next(failed)).fail(new StepError("no", "never", { retryable: false }));
      await world.untilStatus(failed, "error");
      const done = await world.create("count", { params: { to: 1 } });
      await world.untilStatus(done, "done");
      const all = [waiting, paused, failed, done];
      const before = await Promise.all(all.map((id) => world.session(id)));

      assert.equal(await world.restart(), 2, "two are alive");
      await world.meanwhile();
      assert.deepEqual(await Promise.all(all.map((id) => world.session(id))), before);

      await world.tell(waiting, "b");
      assert.deepEqual((await world.held.next(waiting)).frame, { step: "1", state: { heard: ["a"] }, guidance: ["b"] });
      await world.do("agent_resume", paused);
      const resumed = await world.held.next(paused);
      assert.deepEqual(resumed.frame, { step: "three", state: { at: 2 }, guidance: ["waits"] });
      assert.equal(resumed.context.ids.iteration, 2);
      await world.do("agent_resume", failed);
      assert.equal((await world.held.next(failed)).context.ids.iteration, 0);
    });

    test("a session without an owner continues once an action finds it, even if that is refused", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const session = aSession({ params: { to: 2 }, options: { stop_on_done: true } });
      const { session_id } = session;
      const resume = anAction({ action_type: "agent_resume", session_id });
      await mustCommit(world.store, { sessions: [{ kind: "create", session, worker: null }], actions: [resume] });
      assert.equal((await world.settled(resume.action_id)).outcome, "rejected");
      await world.untilStatus(session_id, "done");
    });

    for (const isClaimedAgain of [true, false])
      test(
        `a session that another worker paused meanwhile is resumed, ${isClaimedAgain ? "claimed again before that" : "without a claim"}`,
        TIMEOUT,
        async () => {
          await using world = await World.open(makeHome);
          const { store } = world;
          const session_id = await world.create("held_reactive");
          await world.tell(session_id, "a");
          (await world.held.next(session_id)).finish();
          await world.untilStatus(session_id, "waiting");
          // As if a live process were considered dead without knowing it.
          const { worker_id } = world.runtime.describe();
          await store.releaseSessions({ worker: worker_id, session_ids: [session_id] });
          const taken = await store.claimSession({ worker: WORKER, session_id });
          assert.ok(taken);
          const session = changeStatus(taken.session, "paused");
          await mustCommit(store, { sessions: [{ kind: "update", session, owner: taken.owner }] });
          await store.releaseSessions({ worker: WORKER, session_ids: [session_id] });
          if (isClaimedAgain)
            assert.equal((await store.claimSession({ worker: worker_id, session_id }))?.session.status, "paused");
          await world.do("agent_resume", session_id);
          await world.tell(session_id, "b");
          assert.deepEqual((await world.held.next(session_id)).frame.guidance, ["b"]);
        },
      );

    test("a running session goes on at its next token, and a step that was cut runs again", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const session_id = await world.create("held");
      (await world.held.next(session_id)).finish({ next_step: "second", state: { n: 1 } });
      const cut = await world.held.next(session_id);
      await world.restart();
      const again = await world.held.next(session_id);
      assert.deepEqual(again.frame, cut.frame);
      assert.deepEqual(again.frame, { step: "second", state: { n: 1 } });
      assert.equal(again.context.ids.iteration, 1);
      cut.finish({ text: "of the life before" });
      again.finish({ text: "of this life" });
      await world.untilIteration(session_id, 1);
      assert.deepEqual(
        (await world.steps(session_id)).map(({ text }) => text),
        [null, "of this life"],
      );
    });

    test("guidance that a cut step had been given is given again, and used once", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const session_id = await world.create("held_reactive");
      const action_id = await world.tell(session_id, "a");
      await world.held.next(session_id);
      await world.restart();
      const again = await world.held.next(session_id);
      assert.deepEqual(again.frame.guidance, ["a"]);
      again.finish();
      assert.deepEqual((await world.ended(action_id)).consumed_iteration, 0);
      await world.untilStatus(session_id, "waiting");
      assert.deepEqual(
        (await world.steps(session_id)).map(({ guidance }) => guidance),
        [["a"]],
      );
    });

    test("requests made while no runtime ran are carried out", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const waiting = await world.create("echo");
      await world.runtime.stop();
      const action_id = await world.tell(waiting, "meanwhile");
      const born = await world.create("count", { params: { to: 3 } });
      assert.equal((await world.session(born)).iteration, -1);
      assert.equal((await world.store.getAction(action_id))?.receipt, "accepted");
      await world.restart();
      assert.equal((await world.ended(action_id)).receipt, "consumed");
      assert.equal((await world.untilStatus(born, "done")).iteration, 3);
    });

    test("five hundred running sessions step a few at a time, and each goes on", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      let running = 0;
      let most = 0;
      const moniker = world.moniker("continuous", async ({ step, state }, { ids }) => {
        running += 1;
        most = Math.max(most, running);
        for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return { step, next_step: String(ids.iteration + 1), state, done: false };
      });
      await world.runtime.stop();
      const create = (): Promise<string> => world.create(moniker, { options: { max_steps: 2 } });
      const sessions = await Promise.all(Array.from({ length: 500 }, create));
      assert.equal(await world.restart({ max_running_steps: 25 }), 500);
      await Promise.all(sessions.map((id) => world.untilStatus(id, "stopped")));
      assert.equal(most, 25, "as many at once as may run, and no more");
      const ends = await Promise.all(sessions.map((id) => world.session(id)));
      for (const { iteration, stop_reason } of ends) assert.deepEqual([iteration, stop_reason], [1, "max_steps"]);
    });

    test(
      "a session whose moniker is gone is in error, can be destroyed, or go on when it is back",
      TIMEOUT,
      async () => {
        await using world = await World.open(makeHome);
        const moniker = world.moniker("continuous", ({ step, state }, { ids }) => ({
          step,
          next_step: String(ids.iteration + 1),
          state,
          done: false,
        }));
        const options = { step_interval_ms: 3_600_000 };
        const [running, doomed] = [await world.create(moniker, { options }), await world.create(moniker, { options })];
        await Promise.all([running, doomed].map((id) => world.untilIteration(id, 0)));
        const definition = world.catalog.get(moniker);
        assert.ok(definition);
        world.catalog.delete(moniker);
        await world.restart();
        for (const id of [running, doomed])
          assert.match((await world.untilStatus(id, "error")).last_error ?? "", /unknown_moniker/);
        await world.do("agent_destroy", doomed);
        assert.equal((await world.untilStatus(doomed, "stopped")).stop_reason, "destroyed");
        world.catalog.set(moniker, definition);
        await world.restart();
        await world.do("agent_resume", running);
        await world.untilIteration(running, 1);
      },
    );

    test("a waiting session whose moniker is gone keeps its guidance", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const session_id = await world.create("held_reactive");
      const moniker = world.catalog.get("held_reactive");
      assert.ok(moniker);
      world.catalog.delete("held_reactive");
      await world.restart();
      assert.equal((await world.session(session_id)).status, "waiting");
      const action_id = await world.tell(session_id, "a");
      assert.match((await world.untilStatus(session_id, "error")).last_error ?? "", /unknown_moniker/);
      world.catalog.set("held_reactive", moniker);
      await world.restart();
      await world.do("agent_resume", session_id);
      (await world.held.next(session_id)).finish();
      assert.equal((await world.ended(action_id)).consumed_iteration, 0);
    });
  });
}
