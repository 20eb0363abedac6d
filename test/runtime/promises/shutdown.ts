import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MakeHome, TIMEOUT, World } from "../runtime-fixture.ts";

const HOUR_MS = 3_600_000;
/** Longer than the test takes, but short enough to wait for if it fails. */
const LONG_GRACE_MS = 10_000;

export function shutdown(makeHome: MakeHome): void {
  describe("stop", () => {
    test("lets a running step finish, commits it, and starts no other", TIMEOUT, async () => {
      await using world = await World.open(makeHome, { shutdown_grace_ms: LONG_GRACE_MS });
      const session_id = await world.create("held");
      const step = await world.held.next(session_id);
      let stopped = false;
      const stopping = world.runtime.stop().then(() => (stopped = true));
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(stopped, false, "it waits for the step");
      assert.equal(step.context.signal.aborted, false);
      step.finish({ text: "kept" });
      await stopping;
      assert.deepEqual(
        (await world.steps(session_id)).map(({ text }) => text),
        ["kept"],
      );
      assert.equal(world.held.started(session_id), 1);
      assert.equal((await world.session(session_id)).status, "running", "it goes on after a start");
    });

    test("cuts a step short once the grace is over, and does not keep it", TIMEOUT, async () => {
      await using world = await World.open(makeHome, { shutdown_grace_ms: 20 });
      const session_id = await world.create("held");
      const step = await world.held.next(session_id);
      await world.runtime.stop();
      assert.equal(step.context.signal.aborted, true);
      step.finish({ text: "too late" });
      assert.deepEqual(await world.steps(session_id), []);
      const { status, iteration } = await world.session(session_id);
      assert.deepEqual({ status, iteration }, { status: "running", iteration: -1 });
    });

    test("ends the waits between steps, before retries and for a turn, at once", TIMEOUT, async () => {
      await using world = await World.open(makeHome, { max_running_steps: 1, shutdown_grace_ms: 20 });
      const interval = await world.create("held", { options: { step_interval_ms: HOUR_MS } });
      (await world.held.next(interval)).finish();
      await world.untilIteration(interval, 0);
      const failing = await world.create("held", { options: { retry: { max_attempts: 3, backoff_ms: HOUR_MS } } });
      (await world.held.next(failing)).fail(new Error("once"));
      const holder = await world.create("held");
      await world.held.next(holder);
      const queued = await Promise.all(Array.from({ length: 20 }, () => world.create("held")));
      await world.runtime.stop();
      assert.deepEqual(
        [interval, failing, holder].map((id) => world.held.started(id)),
        [1, 1, 1],
      );
      assert.deepEqual(new Set(queued.map((id) => world.held.started(id))), new Set([0]));
    });

    test("a second time is harmless, and waits as long as the first", TIMEOUT, async () => {
      await using world = await World.open(makeHome, { shutdown_grace_ms: LONG_GRACE_MS });
      const session_id = await world.create("held");
      const step = await world.held.next(session_id);
      let ended = 0;
      const stops = [1, 2, 3].map(() => world.runtime.stop().then(() => (ended += 1)));
      await world.store.listSteps({ session_id, limit: 1, offset: 0 });
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(ended, 0, "none resolves while the step runs");
      step.finish();
      await Promise.all(stops);
      await world.runtime.stop();
      assert.equal((await world.steps(session_id)).length, 1);
    });

    test("during a start leaves nothing running", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      await world.runtime.stop();
      const sessions = await Promise.all(Array.from({ length: 600 }, () => world.create("held")));
      const starting = world.start({ shutdown_grace_ms: 0, max_running_steps: 1000 });
      await world.runtime.stop();
      await starting;
      await world.store.listSessions({ limit: 1, offset: 0 });
      for (const id of sessions) {
        if (world.held.started(id) === 0) continue;
        assert.equal((await world.held.next(id)).context.signal.aborted, true, "a step goes on after the stop");
      }
      assert.equal(await world.start({ max_running_steps: 1000 }), 600, "every session was given up");
      await Promise.all(sessions.map((id) => world.held.next(id)));
    });

    test("just after an action was claimed does not lose the action", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const session_id = await world.create("echo");
      await world.meanwhile();
      const stopped = new Promise<void>((resolve, reject) => {
        const unlisten = world.store.onWork(() => {
          unlisten();
          world.runtime.stop().then(resolve, reject);
        });
      });
      const action_id = await world.tell(session_id, "a");
      await stopped;
      await world.start();
      assert.equal((await world.ended(action_id)).receipt, "consumed");
    });

    test("in a burst of requests leaves each of them to the next worker, on the same store", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const sessions = await Promise.all(Array.from({ length: 50 }, () => world.create("echo")));
      const submissions = sessions.flatMap((id) => [1, 2, 3, 4].map((said) => world.tell(id, said)));
      const ids: string[] = [];
      for (let round = 0; ids.length < submissions.length; round += 1) {
        ids.push(...(await Promise.all(submissions.slice(round * 40, (round + 1) * 40))));
        await world.runtime.stop();
        await world.start();
      }
      for (const id of ids) assert.equal((await world.ended(id)).receipt, "consumed");
      for (const id of sessions) {
        const used = (await world.steps(id)).flatMap(({ guidance }) => guidance);
        assert.deepEqual(used, [1, 2, 3, 4]);
      }
    });

    test("gives up every session, so that another worker can take them", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const waiting = await world.create("held_reactive");
      const running = await world.create("held");
      await world.held.next(running);
      await world.runtime.stop();
      const claimed = await world.store.claimSessions({ worker: "another", limit: 10 });
      assert.deepEqual(claimed.map(({ session }) => session.session_id).sort(), [waiting, running].sort());
    });
  });
}
