import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "../free-port.ts";
import { administer, type PostgresProcess, startPostgres } from "../postgres-process.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { Follower, rowsOf } from "../store/conformance/follower.ts";
import { assertWhole, Cluster } from "./cluster.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import type { Member } from "./member.ts";

const LAST = 60;
const SLOW = { to: LAST, delay_ms: 50 };
const isDone = ({ status }: { status: string }): boolean => status === "done";
const hasBegun = ({ iteration }: { iteration: number }): boolean => iteration >= 2;

/** While sessions run and one of them is followed, something happens; every step exists once, for the follower as well. */
async function assertOutlives(cluster: Cluster, happens: () => Promise<void>): Promise<void> {
  const sessions = await cluster.createMany(12, "count", SLOW);
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
    // Used by these tests only: the other tests continue meanwhile.
    let database: PostgresProcess;
    before(async () => {
      database = await startPostgres();
    });
    after(() => database.stop());
    const openCluster = async (): Promise<Cluster> => Cluster.open(undefined, await postgresHome(database));

    test("restarts: everything goes on", TIMEOUT, async () => {
      await using cluster = await openCluster();
      await cluster.workers(2);
      await assertOutlives(cluster, () => database.restart(() => wait(500)));
    });

    test("ends all connections, again and again: everything goes on", TIMEOUT, async () => {
      await using cluster = await openCluster();
      await cluster.workers(2);
      await assertOutlives(cluster, async () => {
        for (let round = 0; round < 5; round++) {
          await administer(
            database.url,
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'everstep'",
          );
          await wait(300);
        }
      });
      // No process is repeatedly considered dead and comes back: each heartbeat has its lock again.
      const joined = async () =>
        (await cluster.store.listWorkers?.())?.map(({ name, started_at }) => [name, started_at]);
      const members = await joined();
      await wait(2000);
      assert.deepEqual([members?.length, await joined()], [3, members]);
    });

    test(
      "is down when a process starts: it is waited for; asked to stop meanwhile, the process does",
      TIMEOUT,
      async () => {
        await using cluster = await openCluster();
        const own_port = await freePort();
        const away = new URL(cluster.url);
        away.port = String(own_port);
        const members = (["worker", "server", "worker"] as const).map((role) =>
          cluster.start(role, { EVERSTEP_STORE: away.href }),
        );
        const [worker, server, stopped] = members as [Member, Member, Member];
        for (const member of members)
          await eventually("it tells what it waits for", async () =>
            /store_unavailable: .*goes on by itself/.test(member.said),
          );
        await stopped.stop();
        await using proxy = (await FaultyProxy.before(cluster.url, own_port)).proxy;
        // First a port that accepts connections and has nothing behind it.
        proxy.refuse();
        await wait(1000);
        proxy.mend();
        await Promise.all([worker.ready(), server.ready()]);
        const echo = await cluster.create("echo");
        await cluster.tell(echo, "hello");
        await cluster.until("guidance is used", [echo], ({ iteration }) => iteration === 0);
      },
    );

    test(
      "cannot be reached by one worker for 10 s: the other takes over, and the first comes back",
      TIMEOUT,
      async () => {
        await using resources = new AsyncDisposableStack();
        const cluster = await openCluster();
        const { proxy, url } = await FaultyProxy.before(cluster.url);
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
