import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Pool } from "../../src/store/postgres/connections.ts";
import { ORPHANED_NODES, SHARING } from "../../src/store/postgres/membership.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { ListUpkeep, UPKEEP_TUNING } from "../../src/store/postgres/session-lists.ts";
import { administer } from "../postgres-process.ts";
import { onPostgres, postgresHome, postgresServer } from "../postgres-server.ts";
import { eventually } from "../server/server-fixture.ts";
import { mustCreate, WORKER } from "./fixtures.ts";

/** Sessions that these processes own. */
const insert = (first: number, last: number, nodes: readonly number[], status = "running"): string =>
  `insert into agent_state (session_id, agent_id, moniker, params, options, status, iteration, next_step_token, owner, node_no,
     pending_guidance, pending_action_ids, tokens_used, created_action_id, created_at, updated_at, context)
   select 'made ' || n, 'agent', 'count', '{}', '{}', '${status}', -1, 'token', 'worker',
     (array[${nodes.join(", ")}])[1 + n % ${nodes.length}], '[]', '[]', 0, 'action', now(), now(), '{}'
   from generate_series(${first}, ${last}) n`;

const QUIET = { upkeep_ms: 3_600_000, tick_ms: 3_600_000 };

/** Elsewhere in the same database, a transaction of another test would keep VACUUM from removing rows. */
async function databaseOfItsOwn(): Promise<{ url: string; remove: () => Promise<void> }> {
  const { url } = await postgresServer();
  const name = `test_${process.pid}`;
  await administer(url, `create database ${name}`);
  const address = new URL(url);
  address.pathname = name;
  return { url: address.href, remove: () => administer(url, `drop database ${name} with (force)`) };
}

/** Two processes that learned their shares while there was nothing to share. */
async function openPair(t: TestContext, tuning: { tick_ms: number; share_ms: number }) {
  const { url, remove } = await postgresHome();
  const open = () => openPostgresStore({ url, tuning });
  const [giver, taker] = await Promise.all([open(), open()]);
  t.after(async () => {
    await Promise.all([giver.close(), taker.close()]);
    await remove();
  });
  for (const store of [giver, taker]) await store.claimSessions({ worker: WORKER, limit: 0 });
  return { giver, taker };
}

await onPostgres(() => {
  test("what every worker asks again and again reads as little of many sessions as of few", async (t) => {
    const { url, remove } = await databaseOfItsOwn();
    const store = await openPostgresStore({ url, tuning: QUIET });
    const pool = new Pool(url, 1);
    t.after(async () => {
      await pool.close();
      await store.close();
      await remove();
    });
    const upkeep = new ListUpkeep(pool, UPKEEP_TUNING);
    const blocks = async (statement: string, ...parameters: number[]): Promise<number> => {
      const [row] = await pool.query(`explain (analyze, buffers, format json) ${statement}`, ...parameters);
      const plans = row?.["QUERY PLAN"] as { Plan: Record<string, number> }[];
      const plan = plans[0]?.Plan;
      return Number(plan?.["Shared Hit Blocks"]) + Number(plan?.["Shared Read Blocks"]);
    };
    const look = async () => {
      await upkeep.run();
      await administer(url, "vacuum analyze agent_state");
      await administer(url, "vacuum analyze session_count_changes");
      return { sharing: await blocks(SHARING, 1), orphans: await blocks(ORPHANED_NODES) };
    };
    await administer(url, insert(1, 20, [5, 6, 7]));
    const few = await look();
    await administer(url, insert(21, 10_000, [5, 6, 7]));
    const many = await look();
    for (const name of ["sharing", "orphans"] as const)
      assert.ok(many[name] <= few[name] + 30, `${name}: ${few[name]} blocks, then ${many[name]}`);
    const [row] = await pool.query(SHARING, 1);
    assert.deepEqual(row, { others: 0, has_free: false, live: 10_000 });
    const orphaned = await pool.query(ORPHANED_NODES);
    assert.deepEqual(new Set(orphaned.map(({ node_no }) => node_no)), new Set([5, 6, 7]));
  });

  test("released sessions are claimed by who has fewer, whatever their shares were before, and none is left over", async (t) => {
    const { giver, taker } = await openPair(t, { tick_ms: 10, share_ms: 3_600_000 });
    const sessions = [];
    for (let count = 0; count < 10; count++) sessions.push((await mustCreate(giver)).session.session_id);
    let offers = 0;
    taker.onFreeSessions(() => (offers += 1));
    await giver.releaseSessions({ worker: WORKER, session_ids: sessions.slice(0, 5) });
    const claim = async (limit: number) => (await taker.claimSessions({ worker: WORKER, limit })).length;
    assert.equal(await claim(2), 2);
    const [before] = [offers];
    await eventually("it is told of those that are left", async () => offers > before);
    assert.equal(await claim(100), 3);
  });

  test("a process that has too many sessions is told how many, until it has released them", async (t) => {
    const { giver, taker } = await openPair(t, { tick_ms: 10, share_ms: 10 });
    const told: { session_ids: string[]; count: number }[] = [];
    giver.onSurplus((session_ids, count) => told.push({ session_ids, count }));
    const sessions: string[] = [];
    for (let count = 0; count < 10; count++) sessions.push((await mustCreate(giver)).session.session_id);
    const isWhole = ({ session_ids, count }: (typeof told)[number]): boolean =>
      session_ids.length === 10 && count === 5;
    await eventually("it is told twice", async () => told.filter(isWhole).length >= 2);
    assert.deepEqual(told.at(-1)?.session_ids.toSorted(), sessions.toSorted());
    await giver.releaseSessions({ worker: WORKER, session_ids: sessions.slice(0, 5) });
    assert.equal((await taker.claimSessions({ worker: WORKER, limit: 100 })).length, 5);
    await wait(50);
    const { length } = told;
    await wait(100);
    assert.equal(told.length, length, "it has its share");
  });

  test("what is owned by processes that are not in the list is freed, and nothing else", async (t) => {
    const { url, remove } = await postgresHome();
    const other = await openPostgresStore({ url });
    const kept = await mustCreate(other);
    const pool = new Pool(url, 1);
    const NODES = [900, 901];
    await administer(url, insert(1, 6, NODES));
    await administer(url, insert(7, 10, NODES, "waiting"));
    await administer(
      url,
      `insert into queue (action_id, created_at, action_type, session_id, payload, metadata, urgency, processed, attempts, receipt, claimed_by)
       values ('orphaned', now(), 'guidance', 'made 1', '{}', '{}', 0, false, 0, 'queued', 902)`,
    );
    const store = await openPostgresStore({ url, tuning: { tick_ms: 10 } });
    t.after(async () => {
      await pool.close();
      await Promise.all([store.close(), other.close()]);
      await remove();
    });
    await store.claimSessions({ worker: WORKER, limit: 0 });
    const owners = async () => [
      ...(await pool.query(`select node_no is null as is_free, epoch, owner_died, died_node_no from agent_state
        where session_id like 'made %' order by died_node_no`)),
    ];
    await eventually("all are free", async () => (await owners()).every(({ is_free }) => is_free === true));
    const freed = (died_node_no: number) => ({ is_free: true, epoch: 1, owner_died: true, died_node_no });
    assert.deepEqual(await owners(), [...Array(5).fill(freed(900)), ...Array(5).fill(freed(901))]);
    await eventually("the action is free", async () => {
      const [action] = await pool.query("select claimed_by from queue where action_id = 'orphaned'");
      return action?.["claimed_by"] === null;
    });
    const [row] = await pool.query(
      "select owner, epoch from agent_state where session_id = $1",
      kept.session.session_id,
    );
    assert.deepEqual(row, { owner: kept.owner.worker, epoch: kept.owner.epoch });
  });

  test("of a dead process with many sessions the running ones are freed and claimed first, and each once", async (t) => {
    const { url, remove } = await postgresHome();
    const pool = new Pool(url, 1);
    const store = await openPostgresStore({ url, tuning: { tick_ms: 10 } });
    t.after(async () => {
      await pool.close();
      await store.close();
      await remove();
    });
    // More than are freed at once, and older.
    await administer(url, insert(1, 2500, [900], "waiting"));
    await administer(url, insert(2501, 2510, [900]));
    await administer(
      url,
      "insert into workers (node_no, name, takes_sessions, expires_at) values (900, 'dead', true, now() - interval '1 minute')",
    );
    const [claimed, isFree] = [new Set<string>(), "select 1 from agent_state where node_no = 900 limit 1"];
    await eventually("the running ones are claimed", async () => {
      const some = await store.claimSessions({ worker: WORKER, limit: 10 });
      for (const { session } of some) claimed.add(`${session.session_id} ${session.status}`);
      return claimed.size >= 10;
    });
    const running = Array.from({ length: 10 }, (_, index) => `made ${2501 + index} running`);
    assert.deepEqual([...claimed].slice(0, 10).toSorted(), running);
    await eventually("all are free", async () => (await pool.query(isFree)).length === 0);
    const rows = await pool.query(
      `select distinct epoch - (node_no is not null)::integer as freed, owner_died, died_node_no from agent_state`,
    );
    assert.deepEqual([...rows], [{ freed: 1, owner_died: true, died_node_no: 900 }]);
  });

  test("a worker with more sessions than are released at once releases each once, and no other", async (t) => {
    const { url, remove } = await postgresHome();
    const pool = new Pool(url, 1);
    const store = await openPostgresStore({ url });
    t.after(async () => {
      await pool.close();
      await store.close();
      await remove();
    });
    const [process] = await pool.query("select max(node_no) as node_no from workers");
    await administer(url, insert(1, 3400, [Number(process?.["node_no"])], "waiting"));
    await administer(url, "update agent_state set status = 'running' where session_id like '%7'");
    const released = async () => {
      const rows = await pool.query("select session_id from agent_state where node_no is null and epoch = 1");
      return rows.map(({ session_id }) => Number(String(session_id).slice("made ".length))).sort((a, b) => a - b);
    };
    const numbers = Array.from({ length: 3400 }, (_, index) => index + 1);
    const session_ids = numbers.slice(0, 1200).map((number) => `made ${number}`);
    await store.releaseSessions({ worker: "worker", session_ids });
    assert.deepEqual(await released(), numbers.slice(0, 1200));
    await store.releaseSessions({ worker: "another worker" });
    assert.equal((await released()).length, 1200);
    await store.releaseSessions({ worker: "worker" });
    assert.deepEqual(await released(), numbers);
  });
});
