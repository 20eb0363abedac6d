import type { BenchContext } from "../bench.ts";
import { atLeast, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import type { Stand } from "./arena.ts";
import { allFigures, best, spread } from "./compare.ts";
import { contenders } from "./contenders.ts";
import type { Task } from "./peer.ts";
import { drawSteps } from "./pictures.ts";
import { inRounds, type Measured } from "./rounds.ts";

const SESSIONS = 100;
const STEPS = 20;
const LONE_STEPS = 200;
const WARM_UP_STEPS = 5;
/** How many times the best peer's speed Everstep must reach. */
const TIMES = 5;

type Round = { speed: number; lone: number[]; cpu_ms: number; bytes: number };

/** (a) Trivial steps: how many a second, how long one takes alone, what it costs. */
export async function measureSteps({ folder, quick }: BenchContext): Promise<Figure[]> {
  const measured = await inRounds(folder, contenders("with floors"), quick ? 1 : 3, runRound);
  if (!quick) await drawSteps(measured.map(({ contender, rounds }) => ({ contender, values: rounds.map(speedOf) })));
  const peer = best(measured, "peer", speedOf, Math.max);
  return allFigures(measured, (one) => figuresOf(one, peer));
}

const speedOf = ({ speed }: Round): number => speed;

async function runRound(stand: Stand): Promise<Round> {
  const before = await stand.bytes();
  await using child = await stand.open();
  const run = (name: string, sessions: number, steps: number) => {
    const session_ids = Array.from({ length: sessions }, (_, index) => `${name}-${index}`);
    const task: Task = { steps, step_ms: 0, piece_bytes: 0 };
    return child.order({ kind: "run", session_ids, task }, "ran");
  };
  await run("warm", SESSIONS, WARM_UP_STEPS);
  const cpu = await stand.processorTime(child);
  const { ms, steps } = await run("many", SESSIONS, STEPS);
  const cpu_ms = ((await stand.processorTime(child)) - cpu) / (SESSIONS * STEPS);
  if (steps !== SESSIONS * STEPS) throw new Error(`it did ${steps} of ${SESSIONS * STEPS} steps`);
  const { gaps } = await run("lone", 1, LONE_STEPS);
  await child.close();
  const total = SESSIONS * (WARM_UP_STEPS + STEPS) + LONE_STEPS;
  return { speed: steps / (ms / 1_000), lone: gaps, cpu_ms, bytes: ((await stand.bytes()) - before) / total };
}

function figuresOf({ contender: { name, role }, rounds }: Measured<Round>, peer: number): Figure[] {
  const speed = spread(rounds.map(speedOf));
  const lone = summarize(rounds.flatMap((round) => round.lone));
  const figure = (what: string, measured: number, unit: string): Figure => ({
    figure: `${name}: ${what}`,
    measured,
    unit,
    bar: null,
  });
  return [
    figure(`${SESSIONS} sessions x ${STEPS} steps, median of ${rounds.length} rounds`, speed.median, "/s"),
    figure("slowest round", speed.least, "/s"),
    figure("fastest round", speed.most, "/s"),
    ...(role === "everstep"
      ? [{ ...figure("times the fastest peer", speed.median / peer, "x"), bar: atLeast(TIMES) }]
      : []),
    figure("a step alone, p50", lone.p50, "ms"),
    figure("a step alone, p99", lone.p99, "ms"),
    figure("processor time per step, servers included", spread(rounds.map(({ cpu_ms }) => cpu_ms)).median, "ms"),
    figure("kept per step", spread(rounds.map(({ bytes }) => bytes)).median, "bytes"),
  ];
}
