import { flushCompileCache } from "node:module";
import { parentPort } from "node:worker_threads";
import { Semaphore } from "../../concurrency/semaphore.ts";
import { closed, messageOf } from "../store-errors.ts";
import type { Tuning } from "./archiver.ts";
import type { OtherSchema } from "./migrations.ts";
import { StorageThread } from "./storage-thread.ts";
import type { Answer, Call } from "./thread-channel.ts";
import { packError } from "./thread-messages.ts";

/**
 * The journal's thread: opens the storage on the first call, then serves calls by name.
 *
 * An unexpected error ends it, and another thread replaces it (`thread-channel.ts`). Before that, and before it closes, LanceDB
 * operations in progress are awaited: a thread that ends while native code is about to call back takes the whole process down.
 */
let storage: StorageThread | undefined;
/** Eight reads are in memory at once: each may bring as much as `page-size.ts` allows. */
const reads = new Semaphore(8);
const inProgress = new Set<Promise<void>>();
let isEnding = false;
let isClosing = false;

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
    const target = part === "history" || part === "webhooks" || part === "volumes" ? storage?.[part] : storage;
    const name = inPart ?? method;
    const work = (target as unknown as Record<string, (...args: unknown[]) => unknown>)[name];
    return { id, result: await work?.apply(target, args) };
  } catch (error) {
    return { id, error: packError(error) };
  }
}

async function serve(call: Call): Promise<void> {
  parentPort?.postMessage(isClosing ? { id: call.id, error: packError(closed()) } : await answer(call));
  // A program that is killed does not write its compile cache.
  if (call.method === "open") flushCompileCache();
}

/** Reads in progress are awaited, those that wait for their turn are not made. */
async function close(call: Call): Promise<void> {
  isClosing = true;
  await Promise.allSettled(inProgress);
  parentPort?.postMessage(await answer(call));
  parentPort?.close();
}

async function end(error: unknown): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  parentPort?.postMessage({ notice: `the store's thread ends after an error: ${messageOf(error)}` } satisfies Answer);
  // First, since commits may wait for checkpoints that do not succeed.
  await storage?.stopArchiving();
  await Promise.allSettled(inProgress);
  process.exit(1);
}
process.on("uncaughtException", (error) => void end(error));

parentPort?.on("message", (call: Call) => {
  // Unanswered calls fail, or are repeated by the next thread, once this one is gone.
  if (isEnding) return;
  if (call.method === "close") return void close(call);
  // A read holds its slot until its result has left the heap.
  const served = call.method.startsWith("history.") ? reads.run(() => serve(call)) : serve(call);
  inProgress.add(served);
  void served.finally(() => inProgress.delete(served));
});
