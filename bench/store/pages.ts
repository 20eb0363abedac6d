import { join } from "node:path";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { StepFilter } from "../../src/store/store.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { seededRandom, summarize } from "../stats.ts";
import { commitOrThrow, createSessions, type LoadSession, newLoadSession, nextSteps } from "./load.ts";
import { progress } from "./progress.ts";

const SIZES = [1_000, 100_000, 1_000_000];
const STEPS_PER_SESSION = 500;
const PAGE = 100;
const READS = 300;
const WARM_UP = 20;

type History = {
  steps: number;
  store: EmbeddedStore;
  loads: LoadSession[];
  by_iteration: number[];
  by_offset: number[];
};

/** Sessions have the same length at every size, so that only the size of the store differs. */
export async function measurePages({ folder, quick }: BenchContext): Promise<Figure[]> {
  const histories: History[] = [];
  try {
    for (const steps of quick ? SIZES.slice(0, 2) : SIZES) {
      const store = await openEmbeddedStore({ folder: join(folder, `pages-${steps}`) });
      histories.push({ steps, store, loads: [], by_iteration: [], by_offset: [] });
    }
    for (const history of histories) await build(history);
    await readPages(histories);
    return histories.flatMap((history) => pageFigures(history, histories[0] as History));
  } finally {
    for (const { store } of histories) await store.close();
  }
}

/** All sessions advance concurrently, as live ones do, so that a session's steps lie far apart. */
export async function build({ steps, store, loads }: Pick<History, "steps" | "store" | "loads">): Promise<void> {
  loads.push(...Array.from({ length: steps / STEPS_PER_SESSION }, newLoadSession));
  await createSessions(store, loads);
  const groups = Array.from({ length: Math.ceil(loads.length / 50) }, (_, group) =>
    loads.slice(group * 50, group * 50 + 50),
  );
  for (let iteration = 0; iteration < STEPS_PER_SESSION; iteration++) {
    await Promise.all(groups.map((group) => commitOrThrow(store, nextSteps(group))));
    progress(`building ${steps.toLocaleString("en-US")} steps`, (iteration + 1) * loads.length, steps);
  }
  await store.checkpoint();
  await store.compact();
}

/** The sizes take turns, so that a busy moment of the machine affects all of them. */
async function readPages(histories: readonly History[]): Promise<void> {
  const random = seededRandom(2);
  for (let read = -WARM_UP; read < READS; read++) {
    for (const { store, loads, by_iteration, by_offset } of histories) {
      const { session_id } = (loads[Math.floor(random() * loads.length)] as LoadSession).session;
      const first = Math.floor(random() * (STEPS_PER_SESSION - PAGE));
      const page = { session_id, limit: PAGE };
      const afterIteration = await timeRead(store, { ...page, after_iteration: first - 1, offset: 0 }, first);
      const atOffset = await timeRead(store, { ...page, offset: first }, first);
      if (read < 0) continue;
      by_iteration.push(afterIteration);
      by_offset.push(atOffset);
    }
  }
}

async function timeRead(store: EmbeddedStore, filter: StepFilter, first: number): Promise<number> {
  const begun = performance.now();
  const steps = await store.listSteps(filter);
  const took = performance.now() - begun;
  const right = steps.length === PAGE && steps.every((step, index) => step.iteration === first + index);
  if (!right) throw new Error(`a page from iteration ${first} held ${steps.map((step) => step.iteration).join(" ")}`);
  return took;
}

function pageFigures(history: History, smallest: History): Figure[] {
  return (["by_iteration", "by_offset"] as const).flatMap((kind): Figure[] => {
    const what = `page of ${PAGE} ${kind.replace("_", " ")}, ${history.steps.toLocaleString("en-US")} steps`;
    const { p50, p99 } = summarize(history[kind]);
    const figures: Figure[] = [
      { figure: `${what}: p50`, measured: p50, unit: "ms", bar: null },
      { figure: `${what}: p99`, measured: p99, unit: "ms", bar: null },
    ];
    if (history === smallest) return figures;
    const bar = history.steps === SIZES.at(-1) ? atMost(3) : null;
    const against = `${what}: p50 / that at ${smallest.steps.toLocaleString("en-US")}`;
    return [...figures, { figure: against, measured: p50 / summarize(smallest[kind]).p50, unit: "x", bar }];
  });
}
