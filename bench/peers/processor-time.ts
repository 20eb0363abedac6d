import { readdir, readFile } from "node:fs/promises";

/** Linux counts in hundredths of a second, whatever the kernel's own clock rate. */
const TICK_MS = 10;

type Times = { parent: number; ticks: number };

/**
 * CPU time in milliseconds of a process and its descendants, including those that have ended and were waited for. NaN if there
 * is no /proc.
 */
export async function processorTime(pid: number): Promise<number> {
  const all = new Map<number, Times>();
  for (const name of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(name)) continue;
    const text = await readFile(`/proc/${name}/stat`, "utf8").catch(() => null);
    if (text !== null) all.set(Number(name), timesOf(text));
  }
  if (!all.has(pid)) return Number.NaN;
  let ticks = 0;
  for (const [id, times] of all) if (descends(id, pid, all)) ticks += times.ticks;
  return ticks * TICK_MS;
}

function descends(id: number, pid: number, all: ReadonlyMap<number, Times>): boolean {
  for (let at: number | undefined = id; at !== undefined && at > 1; at = all.get(at)?.parent)
    if (at === pid) return true;
  return false;
}

/** The name is in parentheses and may contain anything, so the fields are counted from its end. */
function timesOf(text: string): Times {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { parent: Number(fields[1]), ticks };
}
