import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { administer } from "../postgres-process.ts";
import { onPostgres, postgresServer } from "../postgres-server.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { Follower, rowsOf } from "../store/conformance/follower.ts";
import { assertWhole, Cluster } from "./cluster.ts";
import { CutOffProxy } from "./cut-off-proxy.ts";

const LAST = 120;
const SLOW = { to: LAST, delay_ms: 50 };
const isDone = ({ status }: { status: string }): boolean => status === "done";
const hasBegun = ({ iteration }: { iteration: number }): boolean => iteration >= 2;

/** Sessions run and one of them is followed; something happens; every step is there once, for the follower as well. */
async function assertOutlives(cluster: Cluster, happens: () => Promise<void>): Promise<void> {
  const sessions = await cluster.createMany(20, "count", SLOW);
  const [followed] = sessions as [string];
  const echo = await cluster.create("echo");
  const follower = new Follower(cluster.store, { session_id: followed, after_iteration: -1 });
  await cluster.until("all have begun", sessions, hasBegun);
  await happens();
  await cluster.tell(echo, "after it");
  await cluster.until("all are done", sessions, isDone);
  await cluster.until("guidance is used", [echo], ({ iteration }) => iteration === 0);
  for (const id of sessions) assertWhole(await cluster.steps(id), LAST);
  await follower.until((events) => rowsOf(events, "step").length > LAST);
  await follower.stop();
  assertWhole(rowsOf(follower.events, "step"), LAST);
}

await onPostgres(() => {
  describe("a database that fails", () => {
    test("restarts: everything goes on", TIMEOUT, async (t) => {
      const { restart } = await postgresServer();
      if (!restart) return t.skip("the server of EVERSTEP_TEST_POSTGRES is not ours to restart; unset it to test this");
      await using cluster = await Cluster.open();
      await cluster.workers(2);
      await assertOutlives(cluster, () => restart(() => wait(500)));
    });

    test("ends all connections, again and again: everything goes on", TIMEOUT, async () => {
      const { url } = await postgresServer();
      await using cluster = await Cluster.open();
      await cluster.workers(2);
      await assertOutlives(cluster, async () => {
        for (let round = 0; round < 5; round++) {
          await administer(
            url,
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'everstep'",
          );
          await wait(300);
        }
      });
    });

    test(
      "cannot be reached by one worker for 10 s: the other takes over, and the first comes back",
      TIMEOUT,
      async () => {
        await using resources = new AsyncDisposableStack();
        const cluster = await Cluster.open();
        const { proxy, url } = await CutOffProxy.before(cluster.url);
        resources.use(proxy);
        resources.use(cluster);
        await cluster.workers(1);
        const far = cluster.start("worker", { EVERSTEP_STORE: url });
        await far.ready();
        await assertOutlives(cluster, async () => {
          proxy.cut();
          await wait(10_000);
          assert.equal(await cluster.owned(far), 0);
          proxy.mend();
        });
      },
    );
  });
});
