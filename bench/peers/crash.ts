import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { sharedClock } from "../runtime/child.ts";
import type { Stand } from "./arena.ts";
import { allFigures, best, spread } from "./compare.ts";
import { contenders } from "./contenders.ts";
import { type Crossing, readCrossing } from "./crossing.ts";
import type { Task } from "./peer.ts";
import { drawCrash } from "./pictures.ts";
import { inRounds, type Measured } from "./rounds.ts";

const SESSIONS = Array.from({ length: 50 }, (_, index) => `crash-${index}`);
const TASK: Task = { steps: 100_000, step_ms: 20, piece_bytes: 0 };
const KILLED_AFTER_MS = 1_500;
const LOOKED_AT_FOR_MS = 500;

type Round = Crossing & { resume_ms: number };

/** (c) A process is killed while its steps run, and another one replaces it. Servers outside it keep running. */
export async function measureCrash({ folder, quick }: BenchContext): Promise<Figure[]> {
  const measured = await inRounds(folder, contenders("without floors"), quick ? 1 : 3, runRound);
  if (!quick) await drawCrash(measured.map(({ contender, rounds }) => ({ contender, values: rounds.map(resumeOf) })));
  const peer = best(measured, "peer", resumeOf, Math.min);
  return allFigures(measured, (one) => figuresOf(one, peer));
}

const resumeOf = ({ resume_ms }: Round): number => resume_ms;

async function runRound(stand: Stand): Promise<Round> {
  const trace = join(stand.folder, "..", "crash.trace");
  const work = { session_ids: SESSIONS, task: TASK };
  await using first = await stand.open(trace);
  await first.order({ kind: "start", ...work }, "running");
  await wait(KILLED_AFTER_MS);
  await first.kill();
  const restarted = sharedClock();
  await using second = await stand.open(trace);
  const { at } = await second.order({ kind: "recover", ...work }, "running");
  await wait(LOOKED_AT_FOR_MS);
  await second.kill();
  return { ...(await readCrossing(trace, SESSIONS)), resume_ms: at - restarted };
}

function figuresOf({ contender: { name, role }, rounds }: Measured<Round>, peer: number): Figure[] {
  const ours = role === "everstep";
  const resume = spread(rounds.map(resumeOf));
  const time = (what: string, measured: number): Figure => ({
    figure: `${name}: ${what}`,
    measured,
    unit: "ms",
    bar: null,
  });
  const total = (what: string, key: keyof Crossing, judged: boolean): Figure => ({
    figure: `${name}: ${what} in ${rounds.length} kills of ${SESSIONS.length} sessions`,
    measured: rounds.reduce((sum, round) => sum + round[key], 0),
    unit: "",
    bar: judged && ours ? atMost(0) : null,
  });
  return [
    {
      ...time("process start to the last session running again, median", resume.median),
      bar: ours ? atMost(peer) : null,
    },
    time("process start to the last session running again, shortest", resume.least),
    time("process start to the last session running again, longest", resume.most),
    total("steps lost", "lost", true),
    total("completed steps done again", "redone", true),
    total("steps under way at the kill and done again", "repeated", false),
  ];
}
