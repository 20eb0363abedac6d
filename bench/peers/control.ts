import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import type { Stand } from "./arena.ts";
import { allFigures, best, spread } from "./compare.ts";
import { contenders } from "./contenders.ts";
import type { ControlRound } from "./control-round.ts";
import type { Task } from "./peer.ts";
import { drawControl } from "./pictures.ts";
import { inRounds, type Measured } from "./rounds.ts";

const SESSIONS = Array.from({ length: 50 }, (_, index) => `control-${index}`);
const TASK: Task = { steps: 100_000, step_ms: 50, piece_bytes: 0 };

/** (b) Sessions are paused at some moment of a step and resumed. */
export async function measureControl({ folder, quick }: BenchContext): Promise<Figure[]> {
  const measured = await inRounds(folder, contenders("without floors"), quick ? 1 : 5, runRound);
  if (!quick)
    await drawControl(measured.map(({ contender, rounds }) => ({ contender, values: rounds.map(effectiveOf) })));
  const peer = best(measured, "peer", effectiveOf, Math.min);
  return allFigures(measured, (one) => figuresOf(one, peer));
}

const effectiveOf = ({ effective }: ControlRound): number => summarize(effective).p50;

async function runRound(stand: Stand): Promise<ControlRound> {
  await using child = await stand.open();
  await child.order({ kind: "start", session_ids: SESSIONS, task: TASK }, "running");
  const { round } = await child.order({ kind: "control", session_ids: SESSIONS }, "controlled");
  await child.kill();
  return round;
}

function figuresOf({ contender: { name, role }, rounds }: Measured<ControlRound>, peer: number): Figure[] {
  const ours = role === "everstep";
  const accepted = summarize(rounds.flatMap((round) => round.accepted));
  const effective = summarize(rounds.flatMap((round) => round.effective));
  const resumed = summarize(rounds.flatMap((round) => round.resumed));
  const middles = spread(rounds.map(effectiveOf));
  const time = (what: string, measured: number): Figure => ({
    figure: `${name}: ${what}`,
    measured,
    unit: "ms",
    bar: null,
  });
  const total = (what: string, key: "started_late" | "redone", bar: Figure["bar"]): Figure => ({
    figure: `${name}: ${what}, ${rounds.length * SESSIONS.length} pauses`,
    measured: rounds.reduce((sum, round) => sum + round[key], 0),
    unit: "",
    bar,
  });
  return [
    time("pause to accepted, p50", accepted.p50),
    {
      ...time(`pause to effective, p50, median of ${rounds.length} rounds`, middles.median),
      bar: ours ? atMost(peer) : null,
    },
    time("pause to effective, p50, best round", middles.least),
    time("pause to effective, p50, worst round", middles.most),
    time("pause to effective, p99", effective.p99),
    time("resume to the next step's start, p50", resumed.p50),
    time("resume to the next step's start, p99", resumed.p99),
    total("completed steps done again", "redone", ours ? atMost(0) : null),
    total("steps started after the pause was effective", "started_late", null),
  ];
}
