import type { BenchContext } from "../bench.ts";
import type { Figure } from "../figure.ts";
import { type Costs, readCosts } from "./costs.ts";
import { type Setting, simulate } from "./simulate.ts";

/** 10 million sessions, each taking one step per 1,000 seconds on average. */
const SESSIONS = 10_000_000;
const ALL_STEPS = SESSIONS / 1_000;
const ALL_WORKERS = 1_000;
const FEW_WORKERS = 40;
/** Assumed for the database's machine; the costs are measured. */
const MACHINE = { cores: 16, sync_ms: 0.5 };
/** What still counts as carried. */
const LONGEST_P99_MS = 50;
const MOST_UTILISATION = 0.7;

export async function measureSimulation({ quick }: BenchContext): Promise<Figure[]> {
  const costs = await readCosts();
  const seconds = quick ? 1 : 2;
  return [
    ...kneesByWorkers(costs, seconds),
    ...curve(costs, seconds),
    ...shards(costs, seconds),
    ...whatItTakes(costs),
  ];
}

const figure = (what: string, measured: number, unit = ""): Figure => ({ figure: what, measured, unit, bar: null });

/** The most steps per second that one database can handle. */
function knee(costs: Costs, setting: Omit<Setting, "steps_per_second">, seconds: number): number {
  const carries = (steps_per_second: number): boolean => {
    const { p99, utilisation, keeps_up } = simulate(costs, { ...setting, steps_per_second }, seconds);
    return keeps_up && p99 <= LONGEST_P99_MS && utilisation <= MOST_UTILISATION;
  };
  let [low, high] = [0, 200_000];
  while (high - low > Math.max(20, low * 0.02)) {
    const middle = Math.round((low + high) / 2);
    if (carries(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function kneesByWorkers(costs: Costs, seconds: number): Figure[] {
  return [true, false].flatMap((followed) =>
    [1, 4, 16, 64, 250, ALL_WORKERS].map((workers) =>
      figure(
        `one database, ${workers} workers, ${followed ? "followed" : "followed by nobody"}: carries at most`,
        knee(costs, { ...MACHINE, workers, followed }, seconds),
        "steps/s",
      ),
    ),
  );
}

/** How the time of a commit grows with the load. */
function curve(costs: Costs, seconds: number): Figure[] {
  const setting = { ...MACHINE, workers: 64, followed: true };
  const most = knee(costs, setting, seconds);
  return [0.25, 0.5, 1, 1.25, 1.5, 2].flatMap((share) => {
    const { p50, p99, utilisation, keeps_up } = simulate(
      costs,
      { ...setting, steps_per_second: most * share },
      seconds,
    );
    const name = `64 workers at ${Math.round(share * 100)} % of what they carry${keeps_up ? "" : " (falls behind)"}`;
    return [
      figure(`${name}: commit, p50`, p50, "ms"),
      figure(`${name}: commit, p99`, p99, "ms"),
      figure(`${name}: processors in use`, utilisation * 100, "%"),
    ];
  });
}

/**
 * The same sessions on several databases, each worker connected to one of them; with all workers, and with fewer, busier ones.
 */
function shards(costs: Costs, seconds: number): Figure[] {
  const spread = { [ALL_WORKERS]: [1, 4, 16, 32, 64], [FEW_WORKERS]: [1, 2, 4, 8] };
  return Object.entries(spread).flatMap(([all, counts]) =>
    counts.flatMap((databases) => {
      const setting = {
        ...MACHINE,
        workers: Math.round(Number(all) / databases),
        steps_per_second: ALL_STEPS / databases,
        followed: true,
      };
      const { p99, utilisation, keeps_up } = simulate(costs, setting, seconds);
      const name = `${all} workers, ${ALL_STEPS} steps/s on ${databases} database${databases > 1 ? "s" : ""}`;
      return [
        figure(`${name}: commit, p99${keeps_up ? "" : " (falls behind)"}`, p99, "ms"),
        figure(`${name}: processors in use`, utilisation * 100, "%"),
      ];
    }),
  );
}

/** Without queueing: plain multiplication. */
function whatItTakes(costs: Costs): Figure[] {
  const day = 86_400;
  return [
    figure(`connections of ${ALL_WORKERS} workers at rest`, costs.connections * ALL_WORKERS),
    figure(
      `processors that ${ALL_WORKERS} idle workers keep busy`,
      ((costs.idle_worker_ms + costs.idle_pair_ms * (ALL_WORKERS - 1)) * ALL_WORKERS) / 1_000,
    ),
    figure(`write-ahead log of ${ALL_STEPS} steps/s`, (costs.wal_bytes * ALL_STEPS) / 1e6, "MB/s"),
    figure(`tables and indexes of ${ALL_STEPS} steps/s, in a day`, (costs.disk_bytes * ALL_STEPS * day) / 1e9, "GB"),
  ];
}
