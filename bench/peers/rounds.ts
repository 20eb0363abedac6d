import { rm } from "node:fs/promises";
import { Arena, type Stand } from "./arena.ts";
import type { Contender } from "./contenders.ts";

/** The results of the rounds by contender; one that could not run has none. */
export type Measured<Round> = { contender: Contender; rounds: Round[] };

/** Measures all contenders in turn, round after round, so that a slow minute of the machine affects all alike. */
export async function inRounds<Round>(
  folder: string,
  contenders: readonly Contender[],
  count: number,
  measure: (stand: Stand, contender: Contender) => Promise<Round>,
): Promise<Measured<Round>[]> {
  const measured = contenders.map((contender): Measured<Round> => ({ contender, rounds: [] }));
  const out = new Set<Contender>();
  const arena = await Arena.open(folder);
  try {
    for (let round = 0; round < count; round++)
      for (const { contender, rounds } of measured) {
        if (out.has(contender)) continue;
        try {
          rounds.push(await inStand(arena, contender, measure));
        } catch (error) {
          out.add(contender);
          const [reason] = (error as Error).message.split("\n");
          process.stderr.write(`  ${contender.name} could not run: ${reason}\n`);
        }
      }
  } finally {
    await arena[Symbol.asyncDispose]();
  }
  return measured;
}

async function inStand<Round>(
  arena: Arena,
  contender: Contender,
  measure: (stand: Stand, contender: Contender) => Promise<Round>,
): Promise<Round> {
  const stand = await arena.stand(contender);
  try {
    return await measure(stand, contender);
  } finally {
    await stand[Symbol.asyncDispose]();
    await rm(stand.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
