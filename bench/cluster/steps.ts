import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../bench.ts";
import { atLeast, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { Cluster } from "./cluster.ts";
import { BenchDatabase } from "./database.ts";

const SESSIONS = 100;
const STEPS = 20;
const WORKERS = [1, 2, 4];
const WARM_UPS = 2;
/** The number of workers whose speed has a bar. */
const JUDGED = 2;

export async function measureSteps({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const figures: Figure[] = [];
  for (const workers of WORKERS) {
    await database.query(`create schema steps_${workers}`);
    await using cluster = await Cluster.open(`${database.url}?search_path=steps_${workers}`, folder, workers);
    const speeds: number[] = [];
    let done = 0;
    for (let round = 0; round < (quick ? 5 : 15) + WARM_UPS; round++) {
      const measured = await runRound({ cluster, done });
      done = measured.done;
      if (round >= WARM_UPS) speeds.push(measured.speed);
    }
    const name = `${SESSIONS} sessions x ${STEPS} steps on ${workers} worker${workers > 1 ? "s" : ""}`;
    const figure = { unit: "/s", bar: null };
    figures.push(
      {
        ...figure,
        figure: `${name}: committed steps, median of ${speeds.length} rounds`,
        measured: summarize(speeds).p50,
        bar: workers === JUDGED ? atLeast(5_000) : null,
      },
      { ...figure, figure: `${name}: slowest round`, measured: Math.min(...speeds) },
      { ...figure, figure: `${name}: fastest round`, measured: Math.max(...speeds) },
    );
  }
  return figures;
}

/** From the first request to the last session's last commit. Polled at intervals: following would cost as much as the work. */
async function runRound({ cluster, done }: Round): Promise<{ speed: number; done: number }> {
  const begun = performance.now();
  const ids = await cluster.createMany(SESSIONS, { to: STEPS - 1 });
  while ((await cluster.store.counts()).sessions.done < done + SESSIONS) await wait(LOOK_MS);
  const seconds = (performance.now() - begun) / 1_000;
  for (const id of ids) await checkCounted(cluster, id);
  return { speed: (SESSIONS * STEPS) / seconds, done: done + SESSIONS };
}

type Round = { cluster: Cluster; done: number };
const LOOK_MS = 20;

/** A round that lost or repeated a step would be fast for the wrong reason. */
async function checkCounted({ store }: Cluster, session_id: string): Promise<void> {
  const rows = await store.listSteps({ session_id, limit: STEPS + 1, offset: 0 });
  const counted = rows.every(({ iteration, text }, index) => iteration === index && text === String(index));
  if (rows.length !== STEPS || !counted) throw new Error(`session ${session_id} has ${rows.length} of ${STEPS} steps`);
}
