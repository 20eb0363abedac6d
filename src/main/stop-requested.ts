import { once } from "node:events";
import type { StrayErrors } from "./stray-errors.ts";

/** Milliseconds that stopping may take, running steps and the last move of rows included. */
const STOP_LIMIT_MS = 60_000;
/** The same after an error that nobody caught: what hangs then may never end. */
const STOP_AFTER_FATAL_MS = 15_000;

/** Resolves when the process is to stop, with the milliseconds that this may take. */
export async function stopRequested(strays: StrayErrors): Promise<number> {
  // To listen for the channel's end would keep a process that could not start.
  process.channel?.unref();
  const asked = (["SIGINT", "SIGTERM", "disconnect"] as const).map(async (event) => {
    // SUPERVISE-4: a parent that shares a channel with this process is gone when the channel is.
    await once(process, event);
    return STOP_LIMIT_MS;
  });
  const failed = strays.fatal.then(() => {
    process.exitCode = 1;
    return STOP_AFTER_FATAL_MS;
  });
  return Promise.race([failed, ...asked]);
}
