import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { runInFreshProcess } from "./fresh-process.ts";
import type { MemoryAnswer } from "./memory-process.ts";

export async function measureMemory({ folder }: BenchContext): Promise<Figure[]> {
  const commits = 100_000;
  const args = [join(folder, "memory"), String(commits)];
  const { at_start, at_end, peak } = await runInFreshProcess<MemoryAnswer>("memory-process.ts", args, "by itself");
  const megabytes = (bytes: number): number => bytes / 1e6;
  const after = `memory after ${commits.toLocaleString("en-US")} commits of 100 sessions`;
  return [
    { figure: "memory of an open, empty store", measured: megabytes(at_start), unit: "MB", bar: null },
    { figure: after, measured: megabytes(at_end), unit: "MB", bar: below(600) },
    { figure: "memory at its peak", measured: megabytes(peak), unit: "MB", bar: null },
  ];
}
