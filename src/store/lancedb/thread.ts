import { enableCompileCache, flushCompileCache } from "node:module";
import { dirname } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type { Engine } from "./engine.ts";
import type { Tuning } from "./mover.ts";
import { ReadSlots } from "./read-slots.ts";
import type { Answer, Call, ThreadData } from "./thread-channel.ts";
import { packError } from "./wire.ts";

const { compile_cache } = workerData as ThreadData;
if (compile_cache !== undefined) enableCompileCache(dirname(compile_cache));

/** The journal's thread: opens the engine on the first call, then answers calls by name. */
let engine: Engine | undefined;
const reads = new ReadSlots();

async function answer({ id, method, args }: Call): Promise<Answer> {
  try {
    if (method === "open") {
      const [folder, tuning] = args as [string, Partial<Tuning>];
      // Only now, so that it is taken from the cache.
      const { Engine: Opened } = await import("./engine.ts");
      engine = await Opened.open(folder, tuning, (notice) => parentPort?.postMessage({ notice } satisfies Answer));
      return { id, result: undefined };
    }
    const target = method.startsWith("history.") ? engine?.history : engine;
    const name = method.replace("history.", "");
    const work = (target as unknown as Record<string, (...args: unknown[]) => unknown>)[name];
    return { id, result: await work?.apply(target, args) };
  } catch (error) {
    return { id, error: packError(error) };
  }
}

async function serve(call: Call): Promise<void> {
  parentPort?.postMessage(await answer(call));
  if (call.method === "open") flushCompileCache();
  if (call.method === "close") parentPort?.close();
}

parentPort?.on("message", (call: Call) => {
  // A read has its slot until its answer has left the heap.
  void (call.method.startsWith("history.") ? reads.run(() => serve(call)) : serve(call));
});
