import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EverstepError } from "../../../src/domain/errors.ts";
import { Runtime } from "../../../src/main/runtime.ts";
import type { Batch, Store } from "../../../src/store/store.ts";
import { sessionThat } from "../awaited-rows.ts";
import { failingStore } from "../failing-store.ts";
import { type MakeHome, TIMEOUT, World } from "../runtime-fixture.ts";

/** A store that cannot write for a while only delays the writes. */
export function storeOutages(makeHome: MakeHome): void {
  describe("while the store is out of reach", () => {
    const cases: [string, (batch: Batch) => boolean][] = [
      ["a step", ({ steps = [] }) => steps.some(({ iteration }) => iteration === 1)],
      ["the end of an action", ({ actions = [] }) => actions.some(({ processed }) => processed)],
      ["an error row", ({ steps = [] }) => steps.some(({ status }) => status === "error")],
    ];
    for (const [what, fails] of cases) {
      test(`${what} waits, and nothing is lost or doubled`, TIMEOUT, async () => {
        await using world = await World.open(makeHome);
        await world.runtime.stop();
        let left = 3;
        const store = failing(world.store, (batch) => fails(batch) && left-- > 0);
        const { catalog, workspace } = world;
        const runtime = new Runtime({ store, catalog, workspace, shutdown_grace_ms: 0 });
        await runtime.start();
        const session_id = await world.create("count", {
          params: { to: 3, fail_at: 2, fail_times: 1 },
          options: { retry: { max_attempts: 1, backoff_ms: 1 } },
        });
        const failed = await sessionThat(store, session_id, ({ status }) => status === "error" || status === "done");
        assert.equal(failed.status, "error");
        await world.submit({ action_type: "agent_resume", session_id });
        await sessionThat(store, session_id, ({ status }) => status === "done");
        await runtime.stop();
        const rows = await world.steps(session_id);
        assert.deepEqual(
          rows.map(({ status, iteration }) => `${status} ${iteration}`),
          ["ok 0", "ok 1", "error 2", "ok 2", "ok 3"],
        );
        assert.ok(left <= 0, "the store did fail");
        for (const action of await world.actions(session_id)) assert.equal(action.outcome, "ok");
      });
    }

    test("a request to a session whose step waits is answered, and takes effect afterwards", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      await world.runtime.stop();
      const { catalog, workspace } = world;
      let isFull = true;
      const store = failing(world.store, ({ steps = [] }) => isFull && steps.length > 0);
      const runtime = new Runtime({ store, catalog, workspace, shutdown_grace_ms: 0 });
      await runtime.start();
      const session_id = await world.create("held");
      (await world.held.next(session_id)).finish();
      await new Promise((resolve) => setTimeout(resolve, 50));
      const asked = await runtime.queue.submit({ action_type: "agent_pause", session_id });
      assert.equal(asked.kind, "accepted");
      isFull = false;
      const paused = await sessionThat(store, session_id, ({ status }) => status === "paused");
      assert.equal(paused.iteration, 0);
      await runtime.stop();
    });

    test("a stop does not wait for it, and the next start continues from what is stored", TIMEOUT, async () => {
      await using world = await World.open(makeHome);
      await world.runtime.stop();
      const { catalog, workspace } = world;
      const store = failing(world.store, ({ steps = [] }) => steps.length > 0);
      const runtime = new Runtime({ store, catalog, workspace, shutdown_grace_ms: 20 });
      await runtime.start();
      const session_id = await world.create("held");
      (await world.held.next(session_id)).finish();
      const pause = await world.submit({ action_type: "agent_pause", session_id });
      await runtime.stop();
      assert.equal((await world.session(session_id)).iteration, -1);
      await world.start();
      assert.equal((await world.settled(pause.action_id)).outcome, "ok");
      await world.act("agent_resume", session_id);
      const again = await world.held.next(session_id);
      assert.equal(again.context.ids.iteration, 0);
      again.finish();
      await world.untilIteration(session_id, 0);
    });
  });
}

const failing = (store: Store, fails: (batch: Batch) => boolean): Store =>
  failingStore(store, (batch) =>
    fails(batch) ? new EverstepError("store_full", "the disk is full", "make room; nothing was lost") : null,
  );
