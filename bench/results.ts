import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Figure, keepsBar } from "./figure.ts";

const RESULTS = fileURLToPath(new URL("results", import.meta.url));

/** `load_before` and `load_after` are the load averages of a minute, so that a noisy run can be recognized. */
export type Run = {
  bench: string;
  quick: boolean;
  parts: string[];
  seconds: number;
  load_before: number;
  figures: Figure[];
};

/** Saves a run for later comparison, and also as `copy` if given. Resolves with the path. */
export async function writeResults(run: Run, copy: string | undefined): Promise<string> {
  const date = new Date().toISOString();
  const machine = { node: process.version, cpu_count: availableParallelism(), cpu_model: cpus()[0]?.model ?? null };
  const figures = run.figures.map((figure) => ({ ...figure, ok: figure.bar === null ? null : keepsBar(figure) }));
  const text = `${JSON.stringify({ ...run, load_after: loadavg()[0], date, ...machine, figures }, null, 2)}\n`;
  const path = join(RESULTS, `${run.bench}-${date.replaceAll(/[:.]/g, "-")}.json`);
  for (const target of copy === undefined ? [path] : [path, copy]) {
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
  }
  return path;
}
