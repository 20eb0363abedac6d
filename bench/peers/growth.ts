import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import type { Stand } from "./arena.ts";
import { spread } from "./compare.ts";
import { contenders } from "./contenders.ts";
import { drawGrowth } from "./pictures.ts";
import { inRounds } from "./rounds.ts";

const LENGTHS = [50, 200, 500];
const PIECE_BYTES = 1_024;
/** Sizes hardly differ from round to round, so that fewer do than for times. */
const ROUNDS = 1;

/** (d) Every step adds 1 KB to its session's state: bytes kept for each byte of it. */
export async function measureGrowth({ folder }: BenchContext): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const steps of LENGTHS) {
    const measured = await inRounds(folder, contenders("with floors"), ROUNDS, (stand) => runRound(stand, steps));
    const isLongest = steps === LENGTHS.at(-1);
    if (isLongest) await drawGrowth(measured.map(({ contender, rounds }) => ({ contender, values: rounds })));
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
  await using child = await stand.open();
  // What an empty peer takes for its tables and its files is not growth.
  await child.order({ kind: "run", session_ids: ["first"], task: { steps: 1, step_ms: 0, piece_bytes: 0 } }, "ran");
  const before = await stand.bytes();
  const task = { steps, step_ms: 0, piece_bytes: PIECE_BYTES };
  await child.order({ kind: "run", session_ids: ["grows"], task }, "ran");
  await child.close();
  return ((await stand.bytes()) - before) / (steps * PIECE_BYTES);
}
