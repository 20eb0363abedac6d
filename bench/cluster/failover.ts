import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { sharedClock } from "../runtime/child.ts";
import { summarize } from "../stats.ts";
import { Cluster } from "./cluster.ts";
import { BenchDatabase } from "./database.ts";
import { untilShared } from "./until-shared.ts";

const SESSIONS = 50;
/** Of other sessions, half of which the killed worker has too. */
const WAITING = [0, 20_000];
const STEP_MS = 20;
const ROUNDS = 10;
const QUICK_ROUNDS = 3;

/** Which process committed a session's last step, and when. */
type Last = { pid: number; at: number };

/** From SIGKILL until each running session of the killed worker commits its next step elsewhere. */
export async function measureFailover({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const figures: Figure[] = [];
  for (const waiting of WAITING) {
    const schema = `failover_${waiting}`;
    await database.query(`create schema ${schema}`);
    const place = { url: `${database.url}?search_path=${schema}`, folder };
    const standstills = await killWorkers(database, { ...place, schema }, waiting, quick ? QUICK_ROUNDS : ROUNDS);
    const { p50, p99, max } = summarize(standstills);
    const beside = waiting > 0 ? ` beside ${waiting.toLocaleString("en")} that wait` : "";
    const name = `${SESSIONS} sessions${beside} on 2 workers, one killed: until a session of it goes on`;
    figures.push(
      { figure: `${name}, p50`, measured: p50, unit: "ms", bar: below(1_000) },
      { figure: `${name}, p99`, measured: p99, unit: "ms", bar: null },
      { figure: `${name}, slowest of ${standstills.length}`, measured: max, unit: "ms", bar: null },
    );
  }
  return figures;
}

type Place = { url: string; folder: string; schema: string };

/** Resolves with how long each session stood still, in milliseconds. */
async function killWorkers(
  database: BenchDatabase,
  { url, folder, schema }: Place,
  waiting: number,
  rounds: number,
): Promise<number[]> {
  const last = new Map<string, Last>();
  const taken = new Map<string, Last>();
  await using cluster = await Cluster.open(url, folder, 0, (pid, { at, sessions }) => {
    for (const id of sessions) {
      if (last.get(id)?.pid !== pid) taken.set(id, { pid, at });
      last.set(id, { pid, at });
    }
  });
  if (waiting > 0) await database.query(insertWaiting(schema, waiting));
  for (let workers = 0; workers < 2; workers++) await cluster.join();
  await cluster.createMany(SESSIONS, { to: 10_000_000, delay_ms: STEP_MS });
  const standstills: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await untilShared(cluster.store, 2, waiting + SESSIONS);
    await wait(500);
    const [victim] = cluster.workers.splice(0, 1);
    const orphans = [...last].filter(([, { pid }]) => pid === victim?.pid).map(([id]) => id);
    taken.clear();
    const killed = sharedClock();
    await victim?.child.kill();
    while (!orphans.every((id) => taken.has(id))) await wait(10);
    standstills.push(...orphans.map((id) => (taken.get(id)?.at ?? Number.NaN) - killed));
    await cluster.join();
  }
  return standstills;
}

/** Sessions that nobody owns yet. */
const insertWaiting = (schema: string, count: number): string =>
  `set search_path to ${schema};
   insert into agent_state (session_id, agent_id, moniker, params, options, status, iteration, next_step_token,
     pending_guidance, pending_action_ids, tokens_used, created_action_id, created_at, updated_at, context)
   select 'waits ' || n, 'bench', 'echo', '{}', '{}', 'waiting', -1, 'start', '[]', '[]', 0, 'action', now(), now(), '{}'
   from generate_series(1, ${count}) n`;
