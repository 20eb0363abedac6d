import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Session } from "../../../src/domain/session.ts";
import { everyPage, type MakeHome, TIMEOUT, World } from "../runtime-fixture.ts";

/** More sessions at once than a worker keeps runners for. */
export function crowds(makeHome: MakeHome): void {
  describe("in a crowd of sessions", () => {
    test("guidance to 1,100 that wait is in exactly one step each, in order", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const moniker = world.moniker("reactive", async ({ step, state, guidance = [] }, { ids }) => {
        for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        const heard = [...((state["heard"] ?? []) as number[]), ...(guidance as number[])];
        return { step, next_step: String(ids.iteration + 1), state: { heard }, done: false };
      });
      const sessions = await Promise.all(Array.from({ length: 1100 }, () => world.create(moniker)));
      const said = [0, 1, 2];
      const submissions: Promise<string>[] = [];
      for (const value of said) for (const id of sessions) submissions.push(world.tell(id, value));
      await Promise.all(submissions);
      const heardAll = ({ status, context: { heard } }: Session): boolean =>
        status === "waiting" && Array.isArray(heard) && heard.length >= said.length;
      await Promise.all(sessions.map((id) => world.until(id, heardAll)));
      const steps = await everyPage((page) => world.store.listSteps({ agent_id: "agent", ...page }));
      const stepsOf = Map.groupBy(steps, ({ session_id }) => session_id);
      for (const id of sessions) {
        const used = (stepsOf.get(id) ?? []).toSorted((a, b) => a.iteration - b.iteration);
        assert.deepEqual(
          used.flatMap(({ guidance }) => guidance),
          said,
        );
        assert.deepEqual(used.at(-1)?.state, { heard: said });
      }
      const actions = await everyPage((page) => world.store.listActions({ agent_id: "agent", ...page }));
      const guided = actions.filter(({ action_type }) => action_type === "agent_interrupt");
      assert.equal(guided.length, sessions.length * said.length);
      for (const { receipt } of guided) assert.equal(receipt, "consumed");
    });

    test("1,100 that run after a restart each have one runner, which hears them and stops", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      await world.runtime.stop();
      const sessions = await Promise.all(Array.from({ length: 1100 }, () => world.create("held")));
      await world.restart({ max_running_steps: 5000 });
      const steps = await Promise.all(sessions.map((id) => world.held.next(id)));
      const actionIds = await Promise.all(sessions.map((id) => world.tell(id, "a")));
      for (const id of actionIds.slice(-100)) await world.settled(id);
      await world.meanwhile();
      const twice = sessions.filter((id) => world.held.started(id) !== 1);
      assert.deepEqual(twice, [], "a second runner started a step of these");
      await world.runtime.stop();
      const running = steps.filter(({ context }) => !context.signal.aborted);
      assert.equal(running.length, 0, "no step goes on after the stop");
    });

    test("a session whose runner was long idle is still advanced by one runner only", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      const oldest = await world.create("held_reactive");
      const crowd = await Promise.all(Array.from({ length: 1100 }, () => world.create("echo")));
      await Promise.all([oldest, ...crowd].map((id) => world.until(id, ({ status }) => status === "waiting")));
      for (let round = 0; round < 10; round += 1) {
        const submission = world.tell(oldest, `${round}a`);
        await Promise.all(crowd.slice(round * 100, (round + 1) * 100).map((id) => world.tell(id, "hello")));
        const first = await submission;
        const step = await world.held.next(oldest);
        const second = await world.tell(oldest, `${round}b`);
        await world.settled(second);
        step.finish();
        assert.equal((await world.ended(first)).receipt, "consumed");
        const next = await world.held.next(oldest);
        assert.deepEqual(next.frame.guidance, [`${round}b`]);
        next.finish();
        await world.ended(second);
        assert.equal(world.held.started(oldest), (round + 1) * 2, "no step ran twice");
      }
    });
  });
}
