/** The longest time in milliseconds between two turns of the event loop, and the longest that its thread worked in between. */
export type LoopBlocks = { longest: number; longest_work: number };

const EVERY_MS = 1;

/**
 * Watches the event loop until the returned function is called, which returns the result. If the longest block is far above the
 * longest work, the thread was waiting: for the disk, or for a CPU of a busy machine.
 */
export function watchEventLoop(): () => LoopBlocks {
  let longest = 0;
  let longest_work = 0;
  let turned = performance.now();
  let used = process.threadCpuUsage();
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(used);
    longest = Math.max(longest, performance.now() - turned - EVERY_MS);
    longest_work = Math.max(longest_work, (user + system) / 1_000);
    turned = performance.now();
    used = process.threadCpuUsage();
  };
  const timer = setInterval(look, EVERY_MS);
  return () => {
    clearInterval(timer);
    look();
    return { longest, longest_work };
  };
}
