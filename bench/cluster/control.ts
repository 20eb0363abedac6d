import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { sharedClock } from "../runtime/child.ts";
import { summarize } from "../stats.ts";
import { Cluster } from "./cluster.ts";
import { BenchDatabase } from "./database.ts";
import { untilShared } from "./until-shared.ts";

const SESSIONS = 50;
const STEP_MS = 50;
const WORKERS = 2;

/** One after another, or all in the same turn of the event loop. */
const ARRIVALS = { "one by one": 10, "all at once": 0 } as const;

/** From the response to a request in one process to the commit in another that applied it. */
export async function measureControl({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using database = await BenchDatabase.start(folder);
  const effective = new Map<string, number>();
  await using cluster = await Cluster.open(database.url, folder, WORKERS, (_, { at, actions }) => {
    for (const id of actions) if (!effective.has(id)) effective.set(id, at);
  });
  const sessions = await cluster.createMany(SESSIONS, { to: 1_000_000, delay_ms: STEP_MS });
  await untilShared(cluster.store, WORKERS, SESSIONS);
  const figures: Figure[] = [];
  for (const [arrival, apart_ms] of Object.entries(ARRIVALS)) {
    const times: number[] = [];
    for (let round = 0; round < (quick ? 4 : 20); round++)
      for (const action_type of ["agent_pause", "agent_resume"] as const)
        times.push(...(await runRound(cluster, sessions, action_type, apart_ms, effective)));
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

async function runRound(
  cluster: Cluster,
  sessions: string[],
  action_type: "agent_pause" | "agent_resume",
  apart_ms: number,
  effective: Map<string, number>,
): Promise<number[]> {
  const accepted = new Map<string, number>();
  const asked = sessions.map(async (session_id, index) => {
    if (apart_ms > 0) await wait(index * apart_ms);
    const { action_id } = await cluster.submit({ action_type, session_id });
    accepted.set(action_id, sharedClock());
  });
  await Promise.all(asked);
  while (![...accepted.keys()].every((id) => effective.has(id))) await wait(5);
  return [...accepted].map(([id, at]) => Math.max(0, (effective.get(id) ?? Number.NaN) - at));
}
