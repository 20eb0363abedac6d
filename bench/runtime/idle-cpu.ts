import { setTimeout as wait } from "node:timers/promises";

/** The share of one CPU that the process uses while idle for this many milliseconds. */
export async function idleCpu(milliseconds: number): Promise<number> {
  const cpu = process.cpuUsage();
  const from = performance.now();
  await wait(milliseconds);
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / 1_000 / (performance.now() - from);
}
