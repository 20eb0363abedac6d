import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { atMost, below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { openBareInsert } from "../store/bare-insert.ts";
import { type Round, runRound, STEP_MS } from "./control-round.ts";
import { ControlWatch } from "./control-watch.ts";
import { openRuntime } from "./open-runtime.ts";

const SESSIONS = 50;
/** More than this machine can handle comfortably: the times are bad, but still no step may start late. */
const CROWD = 400;

/** One after another at any moment of a step, or all in the same turn of the event loop. */
const ARRIVALS = { "one by one": STEP_MS, "all at once": 0 } as const;

export async function measureControl({ folder, quick }: BenchContext): Promise<Figure[]> {
  const rounds = quick ? 4 : 20;
  return [
    ...(await measureSessions(join(folder, "control"), SESSIONS, rounds)).flatMap(({ name, measured, inserts }) => [
      ...timeFigures(name, measured, inserts),
      ...countFigures(name, measured),
    ]),
    ...(await measureSessions(join(folder, "control-crowd"), CROWD, rounds / 4)).flatMap(({ name, measured }) =>
      countFigures(name, measured),
    ),
  ];
}

type Measured = { name: string; measured: Round[]; inserts: number[] };

async function measureSessions(folder: string, sessions: number, rounds: number): Promise<Measured[]> {
  const watch = new ControlWatch();
  await using runtime = await openRuntime(folder, watch);
  const params = { to: 1_000_000, delay_ms: STEP_MS };
  const request = { action_type: "agent_create", agent_id: "bench", payload: { moniker: "count", params } } as const;
  const created = await Promise.all(Array.from({ length: sessions }, () => runtime.submit(request)));
  const ids = created.map(({ session_id }) => session_id);
  const bare = openBareInsert(`${folder}-bare.sqlite`);
  try {
    const results: Measured[] = [];
    for (const [arrival, within_ms] of Object.entries(ARRIVALS)) {
      const inserts: number[] = [];
      const measured: Round[] = [];
      const insert = () => {
        for (let times = 0; times < 20; times++) inserts.push(timed(() => bare.insert("as short as a pause")));
      };
      for (let index = 0; index < rounds; index++)
        measured.push(await runRound(runtime, watch, ids, within_ms, insert));
      results.push({ name: `${sessions} sessions, ${arrival}`, measured, inserts });
    }
    return results;
  } finally {
    bare.close();
  }
}

function timed(work: () => void): number {
  const begun = performance.now();
  work();
  return performance.now() - begun;
}

function timeFigures(name: string, rounds: readonly Round[], inserts: readonly number[]): Figure[] {
  const pauses = rounds.flatMap((round) => round.pauses);
  const answered = summarize(pauses.map((pause) => pause.answered));
  const effective = summarize(pauses.map((pause) => pause.effective));
  const resume = summarize(rounds.flatMap((round) => round.resumes));
  const insert = summarize(inserts);
  return [
    { figure: `${name}: bare fsynced insert between them, p50`, measured: insert.p50, unit: "ms", bar: null },
    { figure: `${name}: bare fsynced insert between them, p99`, measured: insert.p99, unit: "ms", bar: null },
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
