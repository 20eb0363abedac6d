import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import postgres from "postgres";
import { ORPHANED_NODES, SHARING } from "../../src/store/postgres/membership.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { BenchContext } from "../bench.ts";
import { Cluster } from "../cluster/cluster.ts";
import { BenchDatabase } from "../cluster/database.ts";
import { fill } from "../cluster/fill.ts";
import type { Figure } from "../figure.ts";
import { processorTime } from "../peers/processor-time.ts";

/** The measured inputs of the simulation. Times are the server's CPU time in milliseconds. */
export type Costs = {
  /** A commit of one step, and each further step in the same group. */
  commit_ms: number;
  step_ms: number;
  /** An idle worker, per second; and in addition for each other worker. */
  idle_worker_ms: number;
  idle_pair_ms: number;
  /** A notification, and each process that receives it. */
  notify_ms: number;
  heard_ms: number;
  /** What a worker asks once a second to know its share, with few live sessions and with many; a part of `idle_worker_ms`. */
  sharing_few_ms: number;
  sharing_many_ms: number;
  /** A worker's own processor time for a step of many. */
  worker_step_ms: number;
  connections: number;
  wal_bytes: number;
  disk_bytes: number;
};

/** The latest measurement, from which the simulation starts. */
const KEPT = fileURLToPath(new URL("costs.json", import.meta.url));

export const readCosts = async (): Promise<Costs> => JSON.parse(await readFile(KEPT, "utf8")) as Costs;

type Server = { database: BenchDatabase; sql: postgres.Sql; pid: number };

/** CPU time rather than elapsed time, so that other load on the machine hardly matters. */
export async function measureCosts({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  try {
    const pid = Number((await readFile(join(folder, "postgres", "postmaster.pid"), "utf8")).split("\n")[0]);
    const server = { database, sql, pid };
    const costs: Costs = {
      ...(await stepCosts(server, folder, quick ? 5 : 20)),
      ...(await idleCosts(server, folder, quick ? 5_000 : 20_000)),
      ...(await notifyCosts(server, quick ? 1_000 : 5_000)),
      ...(await sharingCosts(server, quick ? 20_000 : 200_000)),
    };
    if (!quick) await writeFile(KEPT, `${JSON.stringify(costs, null, 2)}\n`);
    return figuresOf(costs);
  } finally {
    await sql.end();
  }
}

type Spent = { server_ms: number; wal_bytes: number; transactions: number };

/** What the server did during `work`. */
async function during(server: Server, work: () => Promise<void>): Promise<Spent> {
  const before = await stand(server);
  await work();
  // PostgreSQL's own statistics are delayed.
  await wait(1_200);
  const after = await stand(server);
  return {
    server_ms: after.server_ms - before.server_ms,
    wal_bytes: after.wal_bytes - before.wal_bytes,
    transactions: after.transactions - before.transactions,
  };
}

async function stand({ sql, pid }: Server): Promise<Spent> {
  const [row] = await sql`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal_bytes,
      (select xact_commit::float8 from pg_stat_database where datname = current_database()) as transactions`;
  return {
    server_ms: await processorTime(pid),
    wal_bytes: Number(row?.["wal_bytes"]),
    transactions: Number(row?.["transactions"]),
  };
}

const schemaUrl = async ({ database }: Server, name: string): Promise<string> => {
  await database.query(`create schema ${name}`);
  return `${database.url}?search_path=${name}`;
};

async function stepCosts(server: Server, folder: string, rounds: number) {
  await using cluster = await Cluster.open(await schemaUrl(server, "stepping"), folder, 1);
  let done = 0;
  const run = async (sessions: number, steps: number): Promise<void> => {
    await cluster.createMany(sessions, { to: steps - 1 });
    done += sessions;
    while ((await cluster.store.counts()).sessions.done < done) await wait(50);
  };
  await run(100, 20);
  const size = async (): Promise<number> => {
    const [row] = await server.sql`
      select sum(pg_total_relation_size(oid))::float8 as bytes from pg_class
      where relkind = 'r' and relnamespace = 'stepping'::regnamespace`;
    return Number(row?.["bytes"]);
  };
  const before = await size();
  const worker = cluster.workers[0]?.pid ?? 0;
  const cpu = await processorTime(worker);
  const busy = await during(server, async () => {
    for (let round = 0; round < rounds; round++) await run(100, 50);
  });
  const steps = rounds * 100 * 50;
  const worker_step_ms = ((await processorTime(worker)) - cpu) / steps;
  const disk_bytes = ((await size()) - before) / steps;
  const lone_steps = rounds * 200;
  const lone = await during(server, () => run(1, lone_steps));
  return {
    commit_ms: lone.server_ms / lone_steps,
    step_ms: busy.server_ms / steps,
    worker_step_ms,
    wal_bytes: lone.wal_bytes / lone_steps,
    disk_bytes,
  };
}

/** Workers that own nothing and have nothing to do: heartbeats, checks of one another, polls. */
async function idleCosts(server: Server, folder: string, ms: number) {
  const url = await schemaUrl(server, "idling");
  const [few, many] = [2, 8];
  const rates = new Map<number, number>();
  let connections = 0;
  const cluster = await Cluster.open(url, folder, few);
  try {
    for (const workers of [few, many]) {
      while (cluster.workers.length < workers) await cluster.join();
      await wait(2_000);
      const { server_ms } = await during(server, () => wait(ms));
      rates.set(workers, server_ms / ((ms + 1_200) / 1_000));
      const [row] = await server.sql`
        select count(*)::int as count from pg_stat_activity where backend_type = 'client backend'`;
      // One is the bench's own connection, and the bench has a store as well.
      connections = (Number(row?.["count"]) - 1) / (workers + 1);
    }
  } finally {
    await cluster[Symbol.asyncDispose]();
  }
  // Each other worker makes one cost a little more: rate(n) = n * alone + n * (n - 1) * pair.
  const [one, other] = [(rates.get(few) ?? 0) / few, (rates.get(many) ?? 0) / many];
  const idle_pair_ms = Math.max(0, (other - one) / (many - few));
  return { idle_worker_ms: Math.max(0, one - idle_pair_ms * (few - 1)), idle_pair_ms, connections };
}

async function notifyCosts(server: Server, messages: number) {
  const listeners: postgres.Sql[] = [];
  const perMessage = new Map<number, number>();
  const payload = "x".repeat(150);
  try {
    for (const count of [1, 61]) {
      while (listeners.length < count) {
        const listener = postgres(server.database.url, { max: 1, onnotice: () => {} });
        await listener.listen("bench_notify", () => {});
        listeners.push(listener);
      }
      const { server_ms } = await during(server, async () => {
        for (let message = 0; message < messages; message++)
          await server.sql`select pg_notify('bench_notify', ${payload})`;
      });
      perMessage.set(count, server_ms / messages);
    }
  } finally {
    await Promise.all(listeners.map((listener) => listener.end()));
  }
  const heard_ms = ((perMessage.get(61) ?? 0) - (perMessage.get(1) ?? 0)) / 60;
  return { heard_ms, notify_ms: Math.max(0, (perMessage.get(1) ?? 0) - heard_ms) };
}

/** What every worker asks: its share once a second, orphans every ten seconds. */
async function sharingCosts(server: Server, many: number) {
  const times = 200;
  const costs: number[] = [];
  for (const sessions of [FEW_LIVE, many]) {
    const url = await schemaUrl(server, `sharing_${sessions}`);
    const store = await openPostgresStore({ url, tuning: { upkeep_ms: 100 } });
    await fill(url, sessions, 1);
    const client = postgres(url, { max: 1, onnotice: () => {} });
    try {
      // A second of the counts' upkeep; the texts, which take longer, are not what is measured.
      const pending = "select exists (select 1 from session_count_changes) as is_pending";
      while ((await client.unsafe(pending))[0]?.["is_pending"]) await wait(100);
      await client.unsafe("delete from session_search_stale");
      await store.close();
      // As autovacuum does within a minute.
      await client.unsafe("vacuum analyze session_count_changes");
      const { server_ms } = await during(server, async () => {
        for (let time = 0; time < times; time++) {
          await client.unsafe(SHARING, [1], { prepare: true });
          if (time % 10 === 0) await client.unsafe(ORPHANED_NODES);
        }
      });
      costs.push(server_ms / times);
    } finally {
      await client.end();
    }
  }
  return { sharing_few_ms: costs[0] ?? Number.NaN, sharing_many_ms: costs[1] ?? Number.NaN };
}

const FEW_LIVE = 1_000;

function figuresOf(costs: Costs): Figure[] {
  const figure = (what: string, measured: number, unit: string): Figure => ({
    figure: what,
    measured,
    unit,
    bar: null,
  });
  return [
    figure("the server's processor time for a lone step", costs.commit_ms, "ms"),
    figure("the server's processor time for a step of many in a group", costs.step_ms, "ms"),
    figure("a worker's processor time for a step of many", costs.worker_step_ms, "ms"),
    figure("the server's processor time for an idle worker, in a second", costs.idle_worker_ms, "ms"),
    figure("more of that for each worker beside it", costs.idle_pair_ms, "ms"),
    figure("the server's processor time for a notification", costs.notify_ms, "ms"),
    figure("more of that for each process that hears it", costs.heard_ms, "ms"),
    figure("the server's processor time to tell a worker its share of 1,000 sessions", costs.sharing_few_ms, "ms"),
    figure("the same of 200,000 sessions", costs.sharing_many_ms, "ms"),
    figure("connections of a process that rests", costs.connections, ""),
    figure("write-ahead log for a lone step", costs.wal_bytes, "bytes"),
    figure("tables and indexes for a step", costs.disk_bytes, "bytes"),
  ];
}
