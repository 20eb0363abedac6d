import assert from "node:assert/strict";
import { describe, test } from "node:test";
import postgres from "postgres";
import type { Action } from "../../src/domain/action.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { administer } from "../postgres-process.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { anAction, aSession, mustCommit, settled } from "../store/fixtures.ts";

const WORKER = "worker";

/** The claim succeeds and its response is lost: it waits for a lock, `goesThrough` does its work, its connection ends. */
async function losingTheAnswer<Result>(
  url: string,
  claim: () => Promise<Result>,
  goesThrough: (sql: postgres.TransactionSql) => Promise<unknown>,
): Promise<PromiseSettledResult<Result>> {
  const client = postgres(url, { max: 2, onnotice: () => {} });
  try {
    let claiming: Promise<PromiseSettledResult<Result>[]> | undefined;
    await client.begin(async (sql) => {
      await sql.unsafe("lock table agent_state in exclusive mode");
      claiming = Promise.allSettled([claim()]);
      const waiting =
        "from pg_stat_activity where wait_event_type = 'Lock' and query ~ '^\\s*with (free|candidates) as'";
      await eventually("the claim waits", async () => (await client.unsafe(`select 1 ${waiting}`)).length > 0);
      await goesThrough(sql);
      await client.unsafe(`select pg_terminate_backend(pid) ${waiting}`);
    });
    const [result] = (await claiming) as [PromiseSettledResult<Result>];
    return result;
  } finally {
    await client.end();
  }
}

async function withStore(work: (store: Store, url: string) => Promise<void>): Promise<void> {
  const { url, remove } = await postgresHome();
  const store = await openPostgresStore({ url });
  try {
    await store.claimSessions({ worker: WORKER, limit: 1 });
    await work(store, url);
  } finally {
    await store.close();
    await remove();
  }
}

/** Resolves when a statement of another connection waits for a lock of this one. */
async function waitsForLock(sql: postgres.TransactionSql): Promise<void> {
  await eventually("a statement waits for a lock", async () => {
    const [row] = await sql`select count(*)::integer as waiting from pg_locks where not granted`;
    return row?.["waiting"] > 0;
  });
}

await onPostgres(() => {
  describe("a commit that is refused", () => {
    test("for an action that was lost: its session is claimed again, not orphaned", TIMEOUT, async () => {
      await withStore(async (store, url) => {
        const session = aSession();
        const action = anAction({ session_id: session.session_id });
        await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }], actions: [action] });
        const [owned] = await store.claimSessions({ worker: WORKER, limit: 10 });
        assert.equal((await store.claimActions({ worker: WORKER, limit: 10 })).length, 1);
        await administer(url, "update queue set claimed_by = null");
        let isFree = false;
        store.onFreeSessions?.(() => (isFree = true));
        const { owner } = owned as OwnedSession;
        const refused = await store.commit({
          sessions: [{ kind: "update", session, owner }],
          actions: [settled(action)],
        });
        assert.equal(refused.kind, "fenced");
        assert.ok(isFree);
        const again = await store.claimSessions({ worker: WORKER, limit: 10 });
        assert.deepEqual(
          again.map(({ session: { session_id } }) => session_id),
          [session.session_id],
        );
      });
    });

    test("for an action that ended already: it does not end twice, nor is it used twice", TIMEOUT, async () => {
      await withStore(async (store) => {
        const session = aSession();
        await mustCommit(store, { sessions: [{ kind: "create", session, worker: WORKER }] });
        const { session_id } = session;
        const action = anAction({ session_id });
        await mustCommit(store, { actions: [action] });
        let owner = { worker: WORKER, epoch: 1, revision: 0 };
        const commit = async (changed: Action) =>
          (await store.commit({ sessions: [{ kind: "update", session, owner }], actions: [changed] })).kind;
        for (const receipt of ["delivered", "consumed"] as const) {
          const ended = settled(action, { receipt });
          assert.equal(await commit(ended), "committed");
          owner = { ...owner, revision: owner.revision + 1 };
          assert.equal(await commit(ended), "fenced");
          // A worker that was refused claims the session again.
          const claimed = await store.claimSession({ worker: WORKER, session_id });
          owner = (claimed as OwnedSession).owner;
        }
      });
    });

    for (const [why, change, expected] of [
      ["for an owner of before", "update agent_state set epoch = epoch + 1", "fenced"],
      ["for one that another process put into the queue", "", "queue_not_empty"],
    ] as const)
      test(`although it takes effect at once, ${why}: nothing of it is written`, TIMEOUT, async () => {
        await withStore(async (store, url) => {
          const session = aSession();
          await mustCommit(store, { sessions: [{ kind: "create", session, worker: WORKER }] });
          const { session_id } = session;
          const server = await openPostgresStore({ url });
          if (change) await administer(url, change);
          else await mustCommit(server, { actions: [anAction({ session_id })] });
          const action = settled(anAction({ session_id }));
          const paused = { ...session, status: "paused" as const };
          const owner = { worker: WORKER, epoch: 1, revision: 0 };
          const sessions = [{ kind: "update" as const, session: paused, owner }];
          const { kind } = await store.commit({ sessions, actions: [action], only_if_queue_empty: true });
          assert.equal(kind, expected);
          assert.equal(await server.getAction(action.action_id), null);
          assert.equal((await server.getSession(session_id))?.status, "running");
          await server.close();
        });
      });

    test("for a former owner: the claim made meanwhile stays", TIMEOUT, async () => {
      await withStore(async (store, url) => {
        const session = aSession();
        await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }] });
        const [before] = await store.claimSessions({ worker: WORKER, limit: 10 });
        await administer(url, "update agent_state set owner = null, node_no = null, epoch = epoch + 1");
        const client = postgres(url, { max: 1, onnotice: () => {} });
        const { now, late } = await client.begin(async (sql) => {
          await sql`lock table writers in access exclusive mode`;
          const { owner } = before as OwnedSession;
          const commit = store.commit({ sessions: [{ kind: "update", session, owner }] });
          const [claimed] = await store.claimSessions({ worker: WORKER, limit: 10 });
          return { now: claimed as OwnedSession, late: [commit] };
        });
        await client.end();
        assert.equal((await late[0])?.kind, "fenced");
        await mustCommit(store, { sessions: [{ kind: "update", session, owner: now.owner }] });
      });
    });
  });

  describe("an action that another process submits", () => {
    test("while the one before it is about to end is claimed right after it", TIMEOUT, async () => {
      await withStore(async (worker, url) => {
        const server = await openPostgresStore({ url });
        const session = aSession();
        await mustCommit(worker, { sessions: [{ kind: "create", session, worker: WORKER }] });
        const { session_id } = session;
        const [first, second] = [anAction({ session_id }), anAction({ session_id })];
        await mustCommit(server, { actions: [first] });
        await eventually(
          "the first is claimed",
          async () => (await worker.claimActions({ worker: WORKER, limit: 10 })).length === 1,
        );
        const client = postgres(url, { max: 1, onnotice: () => {} });
        const { ending } = await client.begin(async (sql) => {
          await sql`select 1 from queue for update`;
          const ended = worker.commit({ actions: [settled(first)] });
          await waitsForLock(sql);
          const heard = new Promise<void>((resolve) => worker.onWork(resolve));
          await mustCommit(server, { actions: [second] });
          await heard;
          assert.deepEqual(await worker.claimActions({ worker: WORKER, limit: 10 }), []);
          return { ending: [ended] };
        });
        await client.end();
        assert.equal((await ending[0])?.kind, "committed");
        const claimed = await worker.claimActions({ worker: WORKER, limit: 10 });
        assert.deepEqual(
          claimed.map(({ action_id }) => action_id),
          [second.action_id],
        );
        await server.close();
      });
    });
  });

  describe("a claim whose answer is lost", () => {
    test("of sessions: they are claimed again, not owned by a process that does not know it", TIMEOUT, async () => {
      await withStore(async (store, url) => {
        const session = aSession();
        await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }] });
        const result = await losingTheAnswer(
          url,
          () => store.claimSessions({ worker: WORKER, limit: 10 }),
          (sql) =>
            sql`update agent_state set owner = ${WORKER}, node_no = (select max(node_no) from workers), epoch = 1`,
        );
        assert.ok(result.status === "fulfilled", String((result as PromiseRejectedResult).reason));
        assert.deepEqual(
          result.value.map(({ session: { session_id } }) => session_id),
          [session.session_id],
        );
      });
    });

    test("of actions: they are handed out by the next claim", TIMEOUT, async () => {
      await withStore(async (store, url) => {
        const session = aSession();
        const action = anAction({ session_id: session.session_id });
        await mustCommit(store, { sessions: [{ kind: "create", session, worker: null }], actions: [action] });
        await losingTheAnswer(
          url,
          () => store.claimActions({ worker: WORKER, limit: 10 }),
          async (sql) => {
            await sql`update agent_state set owner = ${WORKER}, node_no = (select max(node_no) from workers), epoch = 1`;
            await sql`update queue set claimed_by = (select max(node_no) from workers)`;
          },
        );
        const claimed = await store.claimActions({ worker: WORKER, limit: 10 });
        assert.deepEqual(
          claimed.map(({ action_id }) => action_id),
          [action.action_id],
        );
      });
    });
  });
});
