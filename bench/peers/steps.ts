import type { BenchContext } from "../bench.ts";
import { atLeast, atMost, type Figure } from "../figure.ts";
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
/** The same work runs before it is measured, equally long for each contender: such programs run for days. */
const WARM_UP_MS = 2_000;
/** How many times the work is measured in each round. */
const RUNS = 3;
const ROUNDS = 5;
/**
 * How many times faster than the best peer Everstep must be, and how many times as long as a bare synced insert a lone step may
 * take.
 */
const TIMES = 10;
const LONE_TIMES = 3;

type Round = { speed: number; lone: number[]; cpu_ms: number; bytes: number };

/** (a) Trivial steps: how many a second, how long a lone one takes, and what it costs. */
export async function measureSteps({ folder, quick }: BenchContext): Promise<Figure[]> {
  const measured = await inRounds(folder, contenders("with floors"), quick ? 1 : ROUNDS, runRound);
  if (!quick) await drawSteps(measured.map(({ contender, rounds }) => ({ contender, values: rounds.map(speedOf) })));
  const peer = best(measured, "peer", speedOf, Math.max);
  return allFigures(measured, (one) => [...figuresOf(one, peer), ...loneFigures(one, measured)]);
}

/** A lone step compared with an insert into the same kind of store, one at a time and on disk when it returns. */
function loneFigures({ contender, rounds }: Measured<Round>, all: readonly Measured<Round>[]): Figure[] {
  if (contender.role !== "everstep") return [];
  const floor = all.find(
    ({ contender: { role, variant, keeps } }) => role === "floor" && variant === "single" && keeps === contender.keeps,
  );
  const p50 = (from: readonly Round[]): number => summarize(from.flatMap(({ lone }) => lone)).p50;
  const measured = p50(rounds) / p50(floor?.rounds ?? []);
  return [
    {
      figure: `${contender.name}: a step alone, times a bare synced insert`,
      measured,
      unit: "x",
      bar: atMost(LONE_TIMES),
    },
  ];
}

const speedOf = ({ speed }: Round): number => speed;

async function runRound(stand: Stand): Promise<Round> {
  const before = await stand.bytes();
  await using child = await stand.open();
  let runs = 0;
  let total = 0;
  const run = async (sessions: number, steps: number) => {
    const name = `run-${runs++}`;
    const session_ids = Array.from({ length: sessions }, (_, index) => `${name}-${index}`);
    const task: Task = { steps, step_ms: 0, piece_bytes: 0 };
    const ran = await child.order({ kind: "run", session_ids, task }, "ran");
    if (ran.steps !== sessions * steps) throw new Error(`it did ${ran.steps} of ${sessions * steps} steps`);
    total += ran.steps;
    return ran;
  };
  const warm = performance.now() + WARM_UP_MS;
  while (performance.now() < warm) await run(SESSIONS, STEPS);
  const cpu = await stand.processorTime(child);
  const speeds: number[] = [];
  for (let count = 0; count < RUNS; count++) {
    const { ms, steps } = await run(SESSIONS, STEPS);
    speeds.push(steps / (ms / 1_000));
  }
  const cpu_ms = ((await stand.processorTime(child)) - cpu) / (RUNS * SESSIONS * STEPS);
  const { gaps } = await run(1, LONE_STEPS);
  await child.close();
  return { speed: summarize(speeds).p50, lone: gaps, cpu_ms, bytes: ((await stand.bytes()) - before) / total };
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
