import { constants, PerformanceObserver } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";

/** V8 lets three times of what is alive come to it by default. */
const LEAST_PERCENT = 50;
const MOST_PERCENT = 300;
/** A small heap may grow by so much all the same: to collect it more often costs more time than the memory is worth. */
const LEAST_GROWTH = 96 * 1024 * 1024;

/**
 * Limits by how much the old generation may grow before V8 collects it, for this process and its threads. V8 reads the limit after
 * each collection, so that it may change while the process runs.
 */
export function limitHeapGrowth(): void {
  setGrowth();
  const observer = new PerformanceObserver((list) => {
    const isMajor = list
      .getEntries()
      .some((entry) => kindOf(entry as { detail?: unknown }) === constants.NODE_PERFORMANCE_GC_MAJOR);
    if (isMajor) setGrowth();
  });
  observer.observe({ entryTypes: ["gc"] });
}

function setGrowth(): void {
  const percent = Math.round((LEAST_GROWTH / process.memoryUsage().heapUsed) * 100);
  setFlagsFromString(`--heap-growing-percent=${Math.min(Math.max(percent, LEAST_PERCENT), MOST_PERCENT)}`);
}

const kindOf = ({ detail }: { detail?: unknown }): number | undefined =>
  (detail as { kind?: number } | undefined)?.kind;
