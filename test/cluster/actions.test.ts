import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { onPostgres } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { Cluster } from "./cluster.ts";

const SESSIONS = 40;
const PER_SESSION = 100;

await onPostgres(() => {
  describe(`${SESSIONS * PER_SESSION} actions with a worker killed in the middle`, () => {
    test("none is lost, none is used twice, and each session's keep their order", TIMEOUT, async () => {
      await using cluster = await Cluster.open();
      const [victim] = await cluster.workers(3);
      const sessions = await cluster.createMany(SESSIONS, "echo");
      const sending = sessions.map(async (session_id) => {
        for (let said = 0; said < PER_SESSION; said++) await cluster.tell(session_id, said);
      });
      const half = sessions[0] as string;
      // Counts guidance, not steps: a late step takes many at once.
      const heard = async () => (await cluster.steps(half)).flatMap(({ guidance }) => guidance).length;
      await eventually("the middle", async () => (await heard()) >= 20);
      await victim?.kill();
      await Promise.all(sending);
      await eventually("nothing waits any more", async () => (await cluster.store.counts()).queue_depth === 0);
      await cluster.until(
        "all wait",
        sessions,
        ({ status, pending_guidance }) => status === "waiting" && pending_guidance.length === 0,
      );
      for (const id of sessions) {
        const steps = await cluster.steps(id);
        assert.deepEqual(
          steps.flatMap(({ guidance }) => guidance),
          Array.from({ length: PER_SESSION }, (_, said) => said),
        );
        const used = new Map(
          steps.flatMap(({ iteration, action_ids }) => action_ids.map((action) => [action, iteration])),
        );
        for (const action of await cluster.actions(id)) {
          if (action.action_type === "agent_create") continue;
          assert.equal(action.receipt, "consumed");
          assert.equal(action.consumed_iteration, used.get(action.action_id));
        }
      }
    });
  });
});
