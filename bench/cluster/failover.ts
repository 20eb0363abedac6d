import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { sharedClock } from "../runtime/child.ts";
import { summarize } from "../stats.ts";
import { Cluster } from "./cluster.ts";
import { BenchDatabase } from "./database.ts";
import { untilShared } from "./until-shared.ts";

const SESSIONS = 50;
const STEP_MS = 20;
const ROUNDS = 10;
const QUICK_ROUNDS = 3;

/** Which process committed a session's last step, and when. */
type Last = { pid: number; at: number };

/** From SIGKILL until each session of the killed worker commits its next step elsewhere. */
export async function measureFailover({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const last = new Map<string, Last>();
  const taken = new Map<string, Last>();
  await using cluster = await Cluster.open(database.url, folder, 2, (pid, { at, sessions }) => {
    for (const id of sessions) {
      if (last.get(id)?.pid !== pid) taken.set(id, { pid, at });
      last.set(id, { pid, at });
    }
  });
  await cluster.createMany(SESSIONS, { to: 10_000_000, delay_ms: STEP_MS });
  const standstills: number[] = [];
  for (let round = 0; round < (quick ? QUICK_ROUNDS : ROUNDS); round++) {
    await untilShared(cluster.store, 2, SESSIONS);
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
  const { p50, p99, max } = summarize(standstills);
  const name = `${SESSIONS} sessions on 2 workers, one killed: until a session of it goes on`;
  return [
    { figure: `${name}, p50`, measured: p50, unit: "ms", bar: below(1_000) },
    { figure: `${name}, p99`, measured: p99, unit: "ms", bar: null },
    { figure: `${name}, slowest of ${standstills.length}`, measured: max, unit: "ms", bar: null },
  ];
}
