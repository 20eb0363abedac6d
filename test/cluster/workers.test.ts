import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Pool } from "../../src/store/postgres/connections.ts";
import type { OwnedSession } from "../../src/store/store.ts";
import { onPostgres } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { assertWhole, Cluster } from "./cluster.ts";
import type { Member } from "./member.ts";

const LAST = 60;
const SLOW = { to: LAST, delay_ms: 50 };
/** Longer than a worker takes to start on a busy machine. */
const SLOWER = { to: LAST, delay_ms: 300 };
const isDone = ({ status }: { status: string }): boolean => status === "done";
const hasBegun = ({ iteration }: { iteration: number }): boolean => iteration >= 2;

await onPostgres(() => {
  describe("workers on one database", { concurrency: 2 }, () => {
    test(
      "a worker that joins takes its share, one that leaves hands over at once, and no step is lost",
      TIMEOUT,
      async () => {
        await using cluster = await Cluster.open();
        const [first] = (await cluster.workers(1)) as [Member];
        const running = await cluster.createMany(20, "count", SLOWER);
        const resting = await cluster.createMany(20, "echo");
        await cluster.until("all have begun", running, hasBegun);
        assert.equal(await cluster.owned(first), 40);
        const [second] = (await cluster.workers(1)) as [Member];
        await eventually("both have their share", async () => (await cluster.owned(second)) >= 18);
        await second.stop();
        assert.equal(await cluster.owned(second), 0);
        await cluster.until("all are done", running, isDone);
        for (const id of running) assertWhole(await cluster.steps(id), LAST);
        await cluster.tell(resting[0] as string, "still there?");
        await cluster.until("it answers", resting.slice(0, 1), ({ iteration }) => iteration === 0);
      },
    );

    test("a worker hands over no more than what is too much, however long its steps take", TIMEOUT, async () => {
      await using cluster = await Cluster.open();
      const [first] = (await cluster.workers(1)) as [Member];
      const running = await cluster.createMany(12, "count", { to: 1, delay_ms: 6000 });
      const [second] = (await cluster.workers(1)) as [Member];
      await cluster.until("all have taken a step", running, ({ iteration }) => iteration >= 0);
      await eventually("both have their share", async () => (await cluster.owned(second)) >= 5);
      await cluster.until("all are done", running, isDone);
      const pool = new Pool(cluster.url, 1);
      const moved = await pool.query("select epoch from agent_state where epoch > 1");
      await pool.close();
      assert.ok(moved.length >= 5 && moved.length <= 6, `${moved.length} of 12 were handed over`);
      assert.equal(await cluster.owned(first), 0);
      for (const id of running) assertWhole(await cluster.steps(id), 1);
    });

    test("what a killed worker ran goes on elsewhere, each step once", TIMEOUT, async () => {
      await using cluster = await Cluster.open();
      const workers = await cluster.workers(3);
      const sessions = await cluster.createMany(30, "count", SLOW);
      await cluster.until("all have begun", sessions, hasBegun);
      await eventually("everyone has some", async () => {
        const owners = await cluster.owners();
        return workers.every(({ pid }) => (owners.get(pid)?.owned_sessions ?? 0) >= 5);
      });
      await workers[0]?.kill();
      await workers[1]?.kill();
      await cluster.until("all are done", sessions, isDone);
      for (const id of sessions) assertWhole(await cluster.steps(id), LAST);
    });

    test(
      "whoever claims a killed worker's session is told about the crash, until the session's next commit",
      TIMEOUT,
      async () => {
        await using cluster = await Cluster.open();
        const [victim] = (await cluster.workers(1)) as [Member];
        const session_ids = await cluster.createMany(3, "count", { to: 100_000, delay_ms: 20 });
        await cluster.until("all have begun", session_ids, hasBegun);
        await victim.kill();
        const [first, second, third] = session_ids as [string, string, string];
        const claim = async (session_id: string, worker: string): Promise<OwnedSession> =>
          (await cluster.store.claimSession({ worker, session_id })) ?? assert.fail(`${worker} could not claim it`);
        await eventually(
          "they are free",
          async () => (await cluster.store.claimSession({ worker: "a", session_id: first })) !== null,
        );
        const owned = await claim(first, "a");
        assert.equal(owned.after_crash, true);
        const { session, owner } = owned;
        assert.deepEqual(await cluster.store.commit({ sessions: [{ kind: "update", session, owner }] }), {
          kind: "committed",
        });
        assert.equal((await claim(first, "a")).after_crash, false);
        assert.equal((await claim(second, "a")).after_crash, true);
        await cluster.store.releaseSessions({ worker: "a" });
        assert.equal((await claim(first, "b")).after_crash, false);
        assert.equal((await claim(second, "b")).after_crash, false);
        const others = await cluster.store.claimSessions({ worker: "b", limit: 10 });
        assert.deepEqual(
          others.map((other) => [other.session.session_id, other.after_crash]),
          [[third, true]],
        );
      },
    );

    test(
      "a frozen worker loses its sessions, and what it still writes when it wakes up is refused",
      TIMEOUT,
      async () => {
        await using cluster = await Cluster.open();
        const [zombie, heir] = (await cluster.workers(2)) as [Member, Member];
        const sessions = await cluster.createMany(20, "count", { to: 250, delay_ms: 50 });
        await cluster.until("all have begun", sessions, hasBegun);
        await eventually("the one to freeze has some", async () => (await cluster.owned(zombie)) >= 5);
        zombie.signal("SIGSTOP");
        await eventually("the other has all", async () => (await cluster.owned(heir)) === 20);
        zombie.signal("SIGCONT");
        // It is an ordinary worker again, and takes its share.
        await eventually("it is back", async () => (await cluster.owned(zombie)) >= 5);
        await cluster.until("all are done", sessions, isDone);
        for (const id of sessions) assertWhole(await cluster.steps(id), 250);
      },
    );

    test("control actions reach the owner, whoever submitted them", TIMEOUT, async () => {
      await using cluster = await Cluster.open();
      await cluster.workers(2);
      const sessions = await cluster.createMany(10, "count", { to: 100_000, delay_ms: 20 });
      await cluster.until("all have begun", sessions, hasBegun);
      for (const session_id of sessions) await cluster.submit({ action_type: "agent_pause", session_id });
      await cluster.until("all pause", sessions, ({ status }) => status === "paused");
      for (const session_id of sessions) await cluster.submit({ action_type: "agent_resume", session_id });
      for (const session_id of sessions) await cluster.submit({ action_type: "agent_destroy", session_id });
      await cluster.until("all stop", sessions, ({ status }) => status === "stopped");
      for (const id of sessions)
        for (const { action_type, outcome, attempts } of await cluster.actions(id))
          assert.deepEqual({ outcome, attempts }, { outcome: "ok", attempts: 1 }, action_type);
    });
  });
});
