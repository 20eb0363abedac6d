import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import type { Stand } from "./arena.ts";
import { spread } from "./compare.ts";
import { contenders } from "./contenders.ts";
import type { Task } from "./peer.ts";
import { drawGrowth } from "./pictures.ts";
import { inRounds } from "./rounds.ts";

const LENGTHS = [50, 200, 500];
const PIECE_BYTES = 1_024;
const ROUNDS = 3;

/** (d) Every step adds 1 KB to its session's state: bytes stored per byte of state. */
export async function measureGrowth({ folder, quick }: BenchContext): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const steps of LENGTHS) {
    const measured = await inRounds(folder, contenders("with floors"), quick ? 1 : ROUNDS, (stand) =>
      runRound(stand, steps),
    );
    const isLongest = steps === LENGTHS.at(-1);
    if (isLongest && !quick) await drawGrowth(measured.map(({ contender, rounds }) => ({ contender, values: rounds })));
    for (const { contender, rounds } of measured)
      figures.push({
        figure: `${contender.name}: kept per byte of state after ${steps} steps of 1 KB`,
        measured: spread(rounds).median,
        unit: "bytes",
        bar: contender.role === "everstep" && isLongest ? atMost(5) : null,
      });
  }
  return figures;
}

async function runRound(stand: Stand, steps: number): Promise<number> {
  // Excludes what an empty peer needs for its tables and files, and what it needs only while it runs.
  await runAlone(stand, "first", { steps: 1, step_ms: 0, piece_bytes: 0 });
  const before = await stand.bytes();
  await runAlone(stand, "grows", { steps, step_ms: 0, piece_bytes: PIECE_BYTES });
  return ((await stand.bytes()) - before) / (steps * PIECE_BYTES);
}

async function runAlone(stand: Stand, session_id: string, task: Task): Promise<void> {
  await using child = await stand.open();
  await child.order({ kind: "run", session_ids: [session_id], task }, "ran");
  await child.close();
}
