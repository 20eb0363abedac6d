import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { Cluster } from "./cluster.ts";
import { BenchDatabase } from "./database.ts";

const SESSIONS = 50;
const STEP_MS = 20;
const ROUNDS = 10;
const QUICK_ROUNDS = 3;

/** From SIGKILL until each session that the worker had commits its next step. */
export async function measureFailover({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  await using cluster = await Cluster.open(database.url, folder, 2);
  await cluster.createMany(SESSIONS, { to: 10_000_000, delay_ms: STEP_MS });
  const standstills: number[] = [];
  for (let round = 0; round < (quick ? QUICK_ROUNDS : ROUNDS); round++) standstills.push(...(await runRound(cluster)));
  const { p50, p99, max } = summarize(standstills);
  const name = `${SESSIONS} sessions on 2 workers, one killed: until a session of it goes on`;
  return [
    { figure: `${name}, p50`, measured: p50, unit: "ms", bar: below(1_000) },
    { figure: `${name}, p99`, measured: p99, unit: "ms", bar: null },
    { figure: `${name}, slowest of ${standstills.length}`, measured: max, unit: "ms", bar: null },
  ];
}

async function runRound(cluster: Cluster): Promise<number[]> {
  await untilShared(cluster);
  const leaving = new AbortController();
  const last = new Map<string, number>();
  const gaps = new Map<string, number>();
  let killed = Number.POSITIVE_INFINITY;
  const watching = (async () => {
    for await (const event of cluster.store.follow({ all: true }, leaving.signal)) {
      if (event.kind !== "step") continue;
      const { session_id } = event.step;
      const now = performance.now();
      // What was on its way when the worker died is seen at once.
      if (
        now > killed + ON_ITS_WAY_MS &&
        !gaps.has(session_id) &&
        (last.get(session_id) ?? now) < killed + ON_ITS_WAY_MS
      )
        gaps.set(session_id, now - killed);
      last.set(session_id, now);
    }
  })();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const [victim] = cluster.workers.splice(0, 1);
  killed = performance.now();
  await victim?.child.kill();
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
  leaving.abort();
  await watching;
  if (last.size !== SESSIONS || [...last.values()].some((at) => at < killed + SETTLED_MS / 2))
    throw new Error("a session did not go on");
  await cluster.join();
  return [...gaps.values()].filter((gap) => gap > ON_ITS_WAY_MS + 4 * STEP_MS);
}

const ON_ITS_WAY_MS = 30;
const SETTLED_MS = 3_000;

async function untilShared({ store }: Cluster): Promise<void> {
  for (;;) {
    const workers = ((await store.listWorkers?.()) ?? []).filter(({ takes_sessions }) => takes_sessions);
    if (workers.length === 2 && workers.every(({ owned_sessions }) => owned_sessions > SESSIONS / 4)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
