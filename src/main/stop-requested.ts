import { once } from "node:events";
import type { StrayErrors } from "./stray-errors.ts";

/** How long stopping may take, including running steps and the last move of rows, in milliseconds. */
const STOP_LIMIT_MS = 60_000;
/** The same after an uncaught error: a hanging task may then never end. */
const STOP_AFTER_FATAL_MS = 15_000;

/** Resolves when the process should stop, with the time allowed for that in milliseconds. */
export async function stopRequested(strays: StrayErrors): Promise<number> {
  // Listening for the channel's end would keep alive a process that failed to start.
  process.channel?.unref();
  const requests = (["SIGINT", "SIGTERM", "disconnect"] as const).map(async (event) => {
    // SUPERVISE-4: when the channel closes, the parent process is gone.
    await once(process, event);
    return STOP_LIMIT_MS;
  });
  const failed = strays.fatal.then(() => {
    process.exitCode = 1;
    return STOP_AFTER_FATAL_MS;
  });
  return Promise.race([failed, ...requests]);
}
