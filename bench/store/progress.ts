const shown = new Map<string, number>();

/** Prints a line to stderr for every tenth that is done. */
export function progress(what: string, done: number, total: number): void {
  const tenth = Math.floor((done / total) * 10);
  if (shown.get(what) === tenth) return;
  shown.set(what, tenth);
  process.stderr.write(`  ${what}: ${tenth * 10} %\n`);
}
