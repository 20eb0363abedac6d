export type Interval = { begun: number; ended: number };

/** Milliseconds between two moments that are not covered by any interval. */
export function timeBeside(from: number, to: number, intervals: readonly Interval[]): number {
  let beside = 0;
  let covered = from;
  for (const { begun, ended } of intervals.toSorted((one, other) => one.begun - other.begun)) {
    beside += Math.max(0, begun - covered);
    covered = Math.max(covered, ended);
  }
  return beside + Math.max(0, to - covered);
}
