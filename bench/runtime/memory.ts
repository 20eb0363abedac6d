/** Bytes. The heap is that of the main thread, `resident` is the whole process. */
export type Memory = { heap: number; resident: number };

/** Memory in use after a garbage collection. */
export function memoryNow(): Memory {
  if (!globalThis.gc) throw new Error("this process needs --expose-gc");
  for (let times = 0; times < 3; times++) globalThis.gc();
  const { heapUsed, rss } = process.memoryUsage();
  return { heap: heapUsed, resident: rss };
}
