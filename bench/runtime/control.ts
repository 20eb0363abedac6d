import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { atMost, below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { type Round, runRound, STEP_MS } from "./control-round.ts";
import { ControlWatch } from "./control-watch.ts";
import { openRuntime } from "./open-runtime.ts";

const SESSIONS = 50;
/** More than a machine of this size serves with ease: the times are bad, and still no step may start late. */
const CROWD = 400;

/** One after the other at any moment of a step, or all in the same turn of the event loop. */
const ARRIVALS = { "one by one": STEP_MS, "all at once": 0 } as const;

export async function measureControl({ folder, quick }: BenchContext): Promise<Figure[]> {
  const rounds = quick ? 4 : 20;
  return [
    ...(await measureSessions(join(folder, "control"), SESSIONS, rounds)).flatMap(({ name, measured }) => [
      ...timeFigures(name, measured),
      ...countFigures(name, measured),
    ]),
    ...(await measureSessions(join(folder, "control-crowd"), CROWD, rounds / 4)).flatMap(({ name, measured }) =>
      countFigures(name, measured),
    ),
  ];
}

async function measureSessions(folder: string, sessions: number, rounds: number) {
  const watch = new ControlWatch();
  await using runtime = await openRuntime(folder, watch);
  const params = { to: 1_000_000, delay_ms: STEP_MS };
  const request = { action_type: "agent_create", agent_id: "bench", payload: { moniker: "count", params } } as const;
  const created = await Promise.all(Array.from({ length: sessions }, () => runtime.submit(request)));
  const ids = created.map(({ session_id }) => session_id);
  const results: { name: string; measured: Round[] }[] = [];
  for (const [arrival, within_ms] of Object.entries(ARRIVALS)) {
    const measured: Round[] = [];
    for (let index = 0; index < rounds; index++) measured.push(await runRound(runtime, watch, ids, within_ms));
    results.push({ name: `${sessions} sessions, ${arrival}`, measured });
  }
  return results;
}

function timeFigures(name: string, rounds: readonly Round[]): Figure[] {
  const pauses = rounds.flatMap((round) => round.pauses);
  const answered = summarize(pauses.map((pause) => pause.answered));
  const effective = summarize(pauses.map((pause) => pause.effective));
  const resume = summarize(rounds.flatMap((round) => round.resumes));
  return [
    { figure: `${name}: pause to accepted, p50`, measured: answered.p50, unit: "ms", bar: null },
    { figure: `${name}: pause to accepted, p99`, measured: answered.p99, unit: "ms", bar: below(50) },
    { figure: `${name}: accepted to effective, p50`, measured: effective.p50, unit: "ms", bar: null },
    { figure: `${name}: accepted to effective, p99`, measured: effective.p99, unit: "ms", bar: null },
    { figure: `${name}: resume to the next step's start, p50`, measured: resume.p50, unit: "ms", bar: below(20) },
    { figure: `${name}: resume to the next step's start, p99`, measured: resume.p99, unit: "ms", bar: null },
  ];
}

function countFigures(name: string, rounds: readonly Round[]): Figure[] {
  const pauses = rounds.flatMap((round) => round.pauses);
  const sum = (counts: number[]): number => counts.reduce((total, count) => total + count, 0);
  return [
    {
      figure: `${name}: steps started after ${pauses.length.toLocaleString("en-US")} pauses were accepted`,
      measured: sum(pauses.map((pause) => pause.started_late)),
      unit: "",
      bar: atMost(0),
    },
    {
      figure: `${name}: steps under way at a pause that were not committed`,
      measured: sum(rounds.map((round) => round.lost)),
      unit: "",
      bar: atMost(0),
    },
  ];
}
