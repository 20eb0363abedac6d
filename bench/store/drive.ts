import type { Batch, Store } from "../../src/store/store.ts";
import { commitOrThrow, type LoadSession, nextCommit } from "./load.ts";
import { type LoopBlocks, watchEventLoop } from "./loop-probe.ts";

export type Driven = {
  commits: number;
  seconds: number;
  /** Duration of each commit in milliseconds. */
  latencies: Float64Array;
  blocks: LoopBlocks;
};

type DriveOptions = { commits: number; limit_seconds: number; next?: (load: LoadSession) => Batch };

const STALLED_AFTER_MS = 30_000;

/** Every session commits one step after another, all sessions at once, until there are enough commits or the time is over. */
export async function drive(
  store: Pick<Store, "commit">,
  loads: readonly LoadSession[],
  { commits, limit_seconds, next = nextCommit }: DriveOptions,
): Promise<Driven> {
  const latencies = new Float64Array(commits);
  let started = 0;
  let done = 0;
  const stopProbe = watchEventLoop();
  const begun = performance.now();
  const end = begun + limit_seconds * 1_000;
  const driveOne = async (load: LoadSession): Promise<void> => {
    while (started < commits && performance.now() < end) {
      started++;
      const batch = next(load);
      const sent = performance.now();
      await commitOrThrow(store, batch);
      latencies[done++] = performance.now() - sent;
    }
  };
  const stopWatching = watchForStall(() => done);
  try {
    await Promise.all(loads.map(driveOne));
  } finally {
    stopWatching();
  }
  const seconds = (performance.now() - begun) / 1_000;
  return { commits: done, seconds, latencies: latencies.subarray(0, done), blocks: stopProbe() };
}

/** A store that does not respond would not close either, so the bench ends here instead of waiting forever. */
function watchForStall(done: () => number): () => void {
  let before = -1;
  const timer = setInterval(() => {
    if (done() === before) throw new Error(`no commit was answered for ${STALLED_AFTER_MS / 1_000} s, after ${before}`);
    before = done();
  }, STALLED_AFTER_MS);
  return () => clearInterval(timer);
}
