/** Rows that a compaction of LanceDB has in memory at once, where nothing tells it otherwise. */
const USUAL_ROWS = 8192;
/** Fewer would make it slow where only some rows are large. */
const FEWEST_ROWS = 32;
/** What these rows may be, in characters. An Arrow column ends at 2 GiB. */
const BATCH_CHARACTERS = 64 << 20;
const SETTING = "LANCE_DEFAULT_BATCH_SIZE";

/** LanceDB counts rows, whatever their size, and takes the count from the environment: large rows need a smaller one. */
export function limitCompaction(largest_row: number): void {
  const fitting = Math.floor(BATCH_CHARACTERS / Math.max(1, largest_row));
  const rows = String(Math.max(FEWEST_ROWS, Math.min(USUAL_ROWS, fitting)));
  if ((process.env[SETTING] ?? String(USUAL_ROWS)) !== rows) process.env[SETTING] = rows;
}
