import { flushCompileCache } from "node:module";
import { parentPort } from "node:worker_threads";
import { Semaphore } from "../../concurrency/semaphore.ts";
import { messageOf } from "../store-errors.ts";
import type { Tuning } from "./archiver.ts";
import type { OtherSchema } from "./migrations.ts";
import { StorageThread } from "./storage-thread.ts";
import type { Answer, Call } from "./thread-channel.ts";
import { packError } from "./thread-messages.ts";

/**
 * The journal's thread: opens the storage on the first call, then answers calls by name.
 *
 * It ends by an error that nobody expected, and another thread takes its place (`thread-channel.ts`). Before that, whatever LanceDB
 * has under way is awaited: a thread that ends while native code is about to answer takes the whole process along.
 */
let storage: StorageThread | undefined;
/** Eight reads are in memory at once: each may bring as much as `page-size.ts` lets it. */
const reads = new Semaphore(8);
const underWay = new Set<Promise<void>>();
let isEnding = false;

async function answer({ id, method, args }: Call): Promise<Answer> {
  try {
    if (method === "open") {
      const [folder, tuning, other] = args as [string, Partial<Tuning>, OtherSchema | null];
      storage = await StorageThread.open(
        folder,
        tuning,
        (notice) => parentPort?.postMessage({ notice } satisfies Answer),
        other,
      );
      return { id, result: undefined };
    }
    const [part, inPart] = method.split(".");
    const target = part === "history" || part === "webhooks" ? storage?.[part] : storage;
    const name = inPart ?? method;
    const work = (target as unknown as Record<string, (...args: unknown[]) => unknown>)[name];
    return { id, result: await work?.apply(target, args) };
  } catch (error) {
    return { id, error: packError(error) };
  }
}

async function serve(call: Call): Promise<void> {
  parentPort?.postMessage(await answer(call));
  // A program that is killed writes nothing into its cache.
  if (call.method === "open") flushCompileCache();
  if (call.method === "close") parentPort?.close();
}

async function end(error: unknown): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  parentPort?.postMessage({ notice: `the store's thread met an error and ends: ${messageOf(error)}` } satisfies Answer);
  // First, since commits may wait for moves that do not come through.
  await storage?.stopArchiving();
  await Promise.allSettled(underWay);
  process.exit(1);
}
process.on("uncaughtException", (error) => void end(error));

parentPort?.on("message", (call: Call) => {
  // Calls that are not answered are told, or made again of the next thread, once this one is gone.
  if (isEnding) return;
  // A read has its slot until its answer has left the heap.
  const served = call.method.startsWith("history.") ? reads.run(() => serve(call)) : serve(call);
  underWay.add(served);
  void served.finally(() => underWay.delete(served));
});
