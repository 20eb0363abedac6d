import { setTimeout as wait } from "node:timers/promises";
import { sendMalformedFrames, sendMalformedRequests } from "../test/server/malformed-load.ts";
import type { Random } from "../test/store/random.ts";
import type { Violations } from "./violations.ts";

/** Requests per round, to one of the servers. */
const REQUESTS = 200;
const FRAMES = 50;
const PAUSE_MS = 1000;

/** Keeps sending malformed requests, upgrades and frames. A process that dies of one is noticed by its supervisor. */
export async function disturb(
  urls: readonly string[],
  random: Random,
  violations: Violations,
  signal: AbortSignal,
): Promise<{ requests: number; frames: number }> {
  const sent = { requests: 0, frames: 0 };
  while (!signal.aborted) {
    const target = { url: random.pick(urls) };
    const statuses = await sendMalformedRequests(target, random, REQUESTS);
    // 503 is expected while the store is unreachable.
    if (statuses.has(500)) violations.add(`a malformed request was answered 500 by ${target.url}`);
    await sendMalformedFrames(target, random, FRAMES);
    sent.requests += REQUESTS;
    sent.frames += FRAMES;
    await wait(PAUSE_MS, undefined, { signal }).catch(() => {});
  }
  return sent;
}
