import { setTimeout as wait } from "node:timers/promises";
import { EverstepError } from "../../domain/errors.ts";

const READ_AGAIN_MS = 200;

/** A reader who follows waits for a server that is out of reach. */
export async function patiently<Result>(read: () => Promise<Result[]>, signal: AbortSignal): Promise<Result[]> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (signal.aborted) return [];
      if (!(error instanceof EverstepError)) throw error;
      await wait(READ_AGAIN_MS, undefined, { signal }).catch(() => {});
    }
  }
}
