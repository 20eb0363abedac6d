import { setTimeout as wait } from "node:timers/promises";

/** The share of one processor that the process uses while it has nothing to do for so many milliseconds. */
export async function idleCpu(milliseconds: number): Promise<number> {
  const cpu = process.cpuUsage();
  const from = performance.now();
  await wait(milliseconds);
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / 1_000 / (performance.now() - from);
}
