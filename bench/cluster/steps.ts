import type { BenchContext } from "../bench.ts";
import { atLeast, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { Cluster } from "./cluster.ts";
import { BenchDatabase } from "./database.ts";

const SESSIONS = 100;
const STEPS = 20;
const WORKERS = [1, 2, 4];
/** The number of workers whose speed has a bar. */
const JUDGED = 2;

export async function measureSteps({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const figures: Figure[] = [];
  for (const workers of WORKERS) {
    await database.query(`create schema steps_${workers}`);
    await using cluster = await Cluster.open(`${database.url}?search_path=steps_${workers}`, folder, workers);
    await runRound(cluster);
    await runRound(cluster);
    const speeds: number[] = [];
    for (let round = 0; round < (quick ? 5 : 15); round++) speeds.push(await runRound(cluster));
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

/** From the first request to the last session's last commit, as another process sees it. */
async function runRound(cluster: Cluster): Promise<number> {
  const leaving = new AbortController();
  const wanted = new Set<string>();
  const ended = new Set<string>();
  const all = Promise.withResolvers<void>();
  const look = (): void => {
    if (wanted.size === SESSIONS && [...wanted].every((id) => ended.has(id))) all.resolve();
  };
  const begun = performance.now();
  const watching = (async () => {
    for await (const event of cluster.store.follow({ all: true }, leaving.signal)) {
      if (event.kind !== "session" || event.session.status !== "done") continue;
      ended.add(event.session.session_id);
      look();
    }
  })();
  for (const id of await cluster.createMany(SESSIONS, { to: STEPS - 1 })) wanted.add(id);
  look();
  await all.promise;
  const seconds = (performance.now() - begun) / 1_000;
  leaving.abort();
  await watching;
  for (const id of wanted) await checkCounted(cluster, id);
  return (SESSIONS * STEPS) / seconds;
}

/** A round that lost or doubled a step would be quick for the wrong reason. */
async function checkCounted({ store }: Cluster, session_id: string): Promise<void> {
  const rows = await store.listSteps({ session_id, limit: STEPS + 1, offset: 0 });
  const counted = rows.every(({ iteration, text }, index) => iteration === index && text === String(index));
  if (rows.length !== STEPS || !counted) throw new Error(`session ${session_id} has ${rows.length} of ${STEPS} steps`);
}
