import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { atMost, type Bar, below, type Figure } from "../figure.ts";
import { Child } from "../runtime/child.ts";
import { summarize } from "../stats.ts";
import { type LoopBlocks, watchEventLoop } from "../store/loop-probe.ts";
import type { ModelMessage } from "./model-process.ts";
import { openModelRuntime } from "./model-runtime.ts";

const KB = 1024;
const SIZES: { bytes: number; steps: number; bar: Bar | null }[] = [
  { bytes: 2 * KB, steps: 300, bar: below(15) },
  { bytes: 20 * KB, steps: 150, bar: null },
  { bytes: 100 * KB, steps: 60, bar: null },
  { bytes: 200 * KB, steps: 40, bar: atMost(2500) },
];
/** The first steps load modules lazily, and the very first has no state yet. */
const WARM_UP = 5;

type Measured = { overheads: number[]; own: number[]; blocks: LoopBlocks };

export async function measureModelSteps({ folder, quick }: BenchContext): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { bytes, steps, bar } of SIZES) {
    const measured = await measureSize(
      join(folder, `model-steps-${bytes}`),
      bytes,
      quick ? Math.ceil(steps / 5) : steps,
    );
    figures.push(...sizeFigures(`a step with a state of ${bytes / KB} KB`, measured, bar));
  }
  return figures;
}

async function measureSize(folder: string, bytes: number, steps: number): Promise<Measured> {
  await using model = new Child<ModelMessage>("../model/model-process.ts", [String(bytes)]);
  const first = await model.next();
  if (!("url" in first)) throw new Error("the model did not say where it is");
  await using runtime = await openModelRuntime(folder, first.url);
  await runtime.run(WARM_UP);
  const stopProbe = watchEventLoop();
  const committed = await runtime.run(WARM_UP + steps);
  const blocks = stopProbe();
  const own = await ownTimes(model, WARM_UP + WARM_UP + steps);
  // A step's time is the time since the previous commit.
  const overheads = committed.map((at, index) => at - (committed[index - 1] ?? at) - (own[WARM_UP + index] ?? 0));
  await model.stop();
  return { overheads: overheads.slice(WARM_UP), own: own.slice(2 * WARM_UP), blocks };
}

async function ownTimes(model: Child<ModelMessage>, count: number): Promise<number[]> {
  const times: number[] = [];
  while (times.length < count) {
    const message = await model.next();
    if ("own_ms" in message) times.push(message.own_ms);
  }
  return times;
}

function sizeFigures(name: string, { overheads, own, blocks }: Measured, bar: Bar | null): Figure[] {
  const { p50, p99 } = summarize(overheads);
  return [
    { figure: `${name}: time beside the model's own, p50`, measured: p50, unit: "ms", bar },
    { figure: `${name}: time beside the model's own, p99`, measured: p99, unit: "ms", bar: null },
    { figure: `${name}: the model's own time, p50`, measured: summarize(own).p50, unit: "ms", bar: null },
    { figure: `${name}: event loop blocked, longest`, measured: blocks.longest, unit: "ms", bar: atMost(50) },
    {
      figure: `${name}: event loop at work without a turn, longest`,
      measured: blocks.longest_work,
      unit: "ms",
      bar: null,
    },
  ];
}
