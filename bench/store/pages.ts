import { join } from "node:path";
import { type LanceStore, openLanceStore } from "../../src/store/lancedb/lancedb-store.ts";
import type { StepFilter } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { type Summary, seededRandom, summarize } from "../stats.ts";
import { commitOrThrow, createSessions, type LoadSession, newLoadSession, nextSteps } from "./load.ts";
import { progress } from "./progress.ts";

const SIZES = [1_000, 100_000, 1_000_000];
const STEPS_PER_SESSION = 500;
const PAGE = 100;
const READS = 300;

type Measured = { steps: number; by_iteration: Summary; by_offset: Summary };

/** Sessions are equally long at every size, so that only the size of the store differs. */
export async function measurePages({ folder, quick }: BenchContext): Promise<Figure[]> {
  const store = await openLanceStore({ folder: join(folder, "pages") });
  try {
    const loads: LoadSession[] = [];
    const measured: Measured[] = [];
    for (const steps of quick ? SIZES.slice(0, 2) : SIZES) {
      loads.push(...(await addHistory(store, steps / STEPS_PER_SESSION - loads.length)));
      await store.checkpoint();
      await store.compact();
      measured.push({ steps, ...(await readPages(store, loads)) });
    }
    return measured.flatMap((at) => pageFigures(at, measured[0] as Measured));
  } finally {
    await store.close();
  }
}

/** All sessions advance side by side, as live ones do, so that a session's steps lie far apart. */
async function addHistory(store: LanceStore, sessions: number): Promise<LoadSession[]> {
  const loads = Array.from({ length: sessions }, newLoadSession);
  await createSessions(store, loads);
  const groups = Array.from({ length: Math.ceil(sessions / 50) }, (_, group) =>
    loads.slice(group * 50, group * 50 + 50),
  );
  const total = sessions * STEPS_PER_SESSION;
  for (let step = 0; step < STEPS_PER_SESSION; step++) {
    await Promise.all(groups.map((group) => commitOrThrow(store, nextSteps(group))));
    progress(`building ${total.toLocaleString("en-US")} steps`, (step + 1) * sessions, total);
  }
  return loads;
}

async function readPages(store: LanceStore, loads: readonly LoadSession[]): Promise<Omit<Measured, "steps">> {
  const random = seededRandom(2);
  const by_iteration: number[] = [];
  const by_offset: number[] = [];
  for (let read = -20; read < READS; read++) {
    const load = loads[Math.floor(random() * loads.length)] as LoadSession;
    const first = Math.floor(random() * (STEPS_PER_SESSION - PAGE));
    const { session_id } = load.session;
    const afterIteration = await timeRead(
      store,
      { session_id, after_iteration: first - 1, limit: PAGE, offset: 0 },
      first,
    );
    const atOffset = await timeRead(store, { session_id, limit: PAGE, offset: first }, first);
    if (read < 0) continue;
    by_iteration.push(afterIteration);
    by_offset.push(atOffset);
  }
  return { by_iteration: summarize(by_iteration), by_offset: summarize(by_offset) };
}

async function timeRead(store: LanceStore, filter: StepFilter, first: number): Promise<number> {
  const begun = performance.now();
  const steps = await store.listSteps(filter);
  const took = performance.now() - begun;
  const right = steps.length === PAGE && steps.every((step, index) => step.iteration === first + index);
  if (!right) throw new Error(`a page from iteration ${first} held ${steps.map((step) => step.iteration).join(" ")}`);
  return took;
}

function pageFigures({ steps, ...kinds }: Measured, smallest: Measured): Figure[] {
  return (["by_iteration", "by_offset"] as const).flatMap((kind): Figure[] => {
    const what = `page of ${PAGE} ${kind.replace("_", " ")}, ${steps.toLocaleString("en-US")} steps`;
    const { p50, p99 } = kinds[kind];
    const figures: Figure[] = [
      { figure: `${what}: p50`, measured: p50, unit: "ms", bar: null },
      { figure: `${what}: p99`, measured: p99, unit: "ms", bar: null },
    ];
    if (steps === smallest.steps) return figures;
    const bar = steps === SIZES.at(-1) ? atMost(3) : null;
    const against = `${what}: p50 / that at ${smallest.steps.toLocaleString("en-US")}`;
    return [...figures, { figure: against, measured: p50 / smallest[kind].p50, unit: "x", bar }];
  });
}
