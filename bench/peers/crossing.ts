import { readFile, rm } from "node:fs/promises";

/** What happened to the steps of a killed process in the one that replaced it. */
export type Crossing = {
  /** Steps that were never run, or whose session did not continue. */
  lost: number;
  /** Steps run again although they were complete: the next step had started. */
  redone: number;
  /** Steps run again that may or may not have been complete; only the peer can know. */
  repeated: number;
};

type Life = { first_started: number; last_started: number; done: Set<number> };

/** Reads the lines `life started|ended session index` that both processes left, and deletes the file. */
export async function readCrossing(trace: string, session_ids: readonly string[]): Promise<Crossing> {
  const lives = new Map<string, Life>();
  for (const line of (await readFile(trace, "utf8")).split("\n").filter(Boolean)) {
    const [life, event, session_id, text] = line.split(" ") as [string, string, string, string];
    const index = Number(text);
    const key = `${life} ${session_id}`;
    const progress = lives.get(key) ?? { first_started: index, last_started: index, done: new Set() };
    lives.set(key, progress);
    if (event === "ended") progress.done.add(index);
    else progress.last_started = Math.max(progress.last_started, index);
  }
  await rm(trace);
  const crossing: Crossing = { lost: 0, redone: 0, repeated: 0 };
  for (const id of session_ids) {
    const before = lives.get(`1 ${id}`);
    const after = lives.get(`2 ${id}`);
    if (!before) throw new Error(`session ${id} did not start before the kill`);
    if (!after) {
      crossing.lost += before.last_started;
      continue;
    }
    // A step was complete if the next one had started; continuing beyond the step in progress would skip it.
    crossing.lost += Math.max(
      0,
      after.first_started - before.last_started - (before.done.has(before.last_started) ? 1 : 0),
    );
    for (const index of after.done) {
      if (index < before.last_started) crossing.redone += 1;
      else if (before.done.has(index)) crossing.repeated += 1;
    }
  }
  return crossing;
}
