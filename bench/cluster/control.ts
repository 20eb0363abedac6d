import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { Cluster } from "./cluster.ts";
import { BenchDatabase } from "./database.ts";

const SESSIONS = 50;
const STEP_MS = 50;
const WORKERS = 2;

/** From the answer to a request until the process that asked for it sees the commit that took it in. */
export async function measureControl({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  await using cluster = await Cluster.open(database.url, folder, WORKERS);
  const sessions = await cluster.createMany(SESSIONS, { to: 1_000_000, delay_ms: STEP_MS });
  await shared(cluster);
  const figures: Figure[] = [];
  for (const [arrival, apart_ms] of [
    ["one by one", 10],
    ["all at once", 0],
  ] as const) {
    const times: number[] = [];
    for (let round = 0; round < (quick ? 4 : 20); round++)
      for (const action_type of ["agent_pause", "agent_resume"] as const)
        times.push(...(await runRound(cluster, sessions, action_type, apart_ms)));
    const { p50, p99, max } = summarize(times);
    const name = `${SESSIONS} sessions on ${WORKERS} workers, ${arrival}: accepted to effective`;
    figures.push(
      { figure: `${name}, p50`, measured: p50, unit: "ms", bar: null },
      { figure: `${name}, p99`, measured: p99, unit: "ms", bar: below(100) },
      { figure: `${name}, slowest of ${times.length}`, measured: max, unit: "ms", bar: null },
    );
  }
  return figures;
}

/** Waits until both workers have their part. */
async function shared({ store }: Cluster): Promise<void> {
  for (;;) {
    const workers = (await store.listWorkers?.()) ?? [];
    const owned = workers.filter(({ takes_sessions }) => takes_sessions).map(({ owned_sessions }) => owned_sessions);
    if (Math.min(...owned) >= SESSIONS / WORKERS / 2) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function runRound(
  cluster: Cluster,
  sessions: string[],
  action_type: "agent_pause" | "agent_resume",
  apart_ms: number,
): Promise<number[]> {
  const leaving = new AbortController();
  const accepted = new Map<string, number>();
  const effective = new Map<string, number>();
  const all = Promise.withResolvers<void>();
  const watching = (async () => {
    for await (const event of cluster.store.follow({ all: true }, leaving.signal)) {
      if (event.kind !== "action" || !event.action.processed || effective.has(event.action.action_id)) continue;
      effective.set(event.action.action_id, performance.now());
      if (effective.size === sessions.length) all.resolve();
    }
  })();
  const asked = sessions.map(async (session_id, index) => {
    await new Promise((resolve) => setTimeout(resolve, index * apart_ms));
    const { action_id } = await cluster.submit({ action_type, session_id });
    accepted.set(action_id, performance.now());
  });
  await Promise.all(asked);
  await all.promise;
  leaving.abort();
  await watching;
  return [...accepted].map(([id, at]) => Math.max(0, (effective.get(id) ?? Number.NaN) - at));
}
