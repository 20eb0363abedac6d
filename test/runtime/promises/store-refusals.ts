import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EverstepError } from "../../../src/domain/errors.ts";
import { Runtime } from "../../../src/main/runtime.ts";
import type { Batch } from "../../../src/store/store.ts";
import { failingStore } from "../failing-store.ts";
import { type MakeHome, TIMEOUT, World } from "../runtime-fixture.ts";

/** What the store refuses permanently ends with the reason, and nothing waits behind it. */
export function storeRefusals(makeHome: MakeHome): void {
  describe("what the store permanently refuses to write", () => {
    test("ends a step's session as error, which goes on after a resume", TIMEOUT, async () => {
      await using refused = await refusingWorld(makeHome);
      const { world } = refused;
      const session_id = await world.create("held");
      refused.when = ({ steps = [] }) => steps.some((step) => step.session_id === session_id && step.status === "ok");
      const step = await world.held.next(session_id);
      const action_id = await world.tell(session_id, "kept");
      await world.delivered(action_id);
      step.finish();
      const failed = await world.untilStatus(session_id, "error");
      assert.match(failed.last_error ?? "", /^EverstepError: store_refused: it is too large/);
      assert.deepEqual(failed.pending_guidance, ["kept"]);
      await world.meanwhile();
      refused.when = () => false;
      await world.do("agent_resume", session_id);
      const again = await world.held.next(session_id);
      assert.deepEqual(again.frame.guidance, ["kept"]);
      again.finish();
      assert.equal((await world.ended(action_id)).receipt, "consumed");
      assert.deepEqual(
        (await world.steps(session_id)).map(({ status, iteration }) => `${status} ${iteration}`),
        ["error 0", "ok 0"],
      );
    });

    test("ends only that request of many, and its sender is told", TIMEOUT, async () => {
      await using refused = await refusingWorld(makeHome);
      const { world } = refused;
      const session_id = await world.create("held");
      const step = await world.held.next(session_id);
      refused.when = ({ sessions = [] }) =>
        sessions.some(({ session }) => session.pending_guidance.includes("bad") && session.session_id === session_id);
      const ids = await Promise.all(["first", "bad", "last"].map((text) => world.tell(session_id, text)));
      const pause = await world.submit({ action_type: "agent_pause", session_id });
      const [first, bad, last] = await Promise.all(ids.map((id) => world.settled(id)));
      assert.deepEqual([first?.outcome, last?.outcome], ["ok", "ok"]);
      assert.deepEqual([bad?.outcome, bad?.receipt], ["failed", "bounced"]);
      assert.match(bad?.error ?? "", /store_refused: it is too large/);
      assert.equal((await world.settled(pause.action_id)).outcome, "ok");
      step.finish();
      await world.untilIteration(session_id, 0);
      assert.deepEqual((await world.session(session_id)).pending_guidance, ["first", "last"]);
    });

    test("ends nothing if the store itself is broken: that continues once it works again", TIMEOUT, async () => {
      await using refused = await refusingWorld(makeHome);
      const { world } = refused;
      const session_id = await world.create("count", { params: { to: 2, delay_ms: 50 } });
      await world.untilIteration(session_id, 0);
      let isIll = true;
      refused.when = ({ steps = [] }) => {
        const wasIll = isIll;
        if (steps.some((step) => step.status === "error")) isIll = false;
        return wasIll;
      };
      const action_id = await world.tell(session_id, "anyway").catch(() => null);
      const { status, last_error } = await world.untilStatus(session_id, "done", "error");
      assert.deepEqual([status, last_error], ["done", null]);
      assert.equal(action_id, null, "the store did refuse");
      assert.ok(!isIll, "the end was tried as well");
    });
  });
}

type RefusingWorld = AsyncDisposable & { world: World; when: (batch: Batch) => boolean };

/** A world whose store refuses the matching commits. */
async function refusingWorld(makeHome: MakeHome): Promise<RefusingWorld> {
  const world = await World.open(makeHome);
  await world.runtime.stop();
  const { catalog, workspace } = world;
  const refusal = () => new EverstepError("store_refused", "it is too large", "make it smaller");
  const store = failingStore(world.store, (batch) => (refused.when(batch) ? refusal() : null));
  const runtime = new Runtime({ store, catalog, workspace, shutdown_grace_ms: 20, destroy_grace_ms: 20 });
  const refused: RefusingWorld = {
    world,
    when: () => false,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
    },
  };
  world.runtime = runtime;
  await runtime.start();
  return refused;
}
