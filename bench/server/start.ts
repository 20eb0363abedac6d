import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { Child } from "../runtime/child.ts";
import { summarize } from "../stats.ts";
import type { BareMessage } from "./bare-process.ts";
import { startEverstep } from "./everstep-process.ts";

const STARTS = 5;

export async function measureStart({ folder }: BenchContext): Promise<Figure[]> {
  const everstep: number[] = [];
  const bare: number[] = [];
  for (let index = 0; index < STARTS; index++) {
    await using server = await startEverstep(join(folder, `start-${index}`));
    everstep.push(server.ready_ms);
    bare.push(await startBare());
  }
  const { p50, max } = summarize(everstep);
  const name = `\`everstep serve\` with an empty store to the first good answer of /health, of ${STARTS}`;
  return [
    { figure: `${name}: median`, measured: p50 / 1_000, unit: "s", bar: below(1.5) },
    { figure: `${name}: longest`, measured: max / 1_000, unit: "s", bar: null },
    { figure: "a bare Fastify to its listening: median", measured: summarize(bare).p50 / 1_000, unit: "s", bar: null },
  ];
}

async function startBare(): Promise<number> {
  const begun = performance.now();
  await using bare = new Child<BareMessage>("../server/bare-process.ts", []);
  await bare.next();
  const took = performance.now() - begun;
  await bare.stop();
  return took;
}
