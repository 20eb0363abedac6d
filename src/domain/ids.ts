import { monotonicFactory } from "ulid";
import { z } from "zod";

const mint = monotonicFactory(pooledRandom());

/** A ULID. Ids made by one process sort in the order they were made, even within a millisecond. */
export const newId = (): string => mint();

/** The current time. Ids sort by creation time, so call this next to `newId` to keep both orders equal. */
export const now = (): string => lastNow.textOf(Date.now());

/** Caches the last formatted time: formatting is slow, and many rows are written within a millisecond. */
export class CachedIsoTime {
  #ms = Number.NaN;
  #text = "";

  textOf(ms: number): string {
    if (ms !== this.#ms) {
      this.#ms = ms;
      this.#text = new Date(ms).toISOString();
    }
    return this.#text;
  }
}
const lastNow = new CachedIsoTime();

/** An id from a client: any text without control characters, which separate keys inside the store. */
export const idSchema = z
  .string()
  .min(1)
  .max(200)
  .regex(/^\P{Cc}*$/u, "must not contain control characters")
  .refine((id) => id.isWellFormed(), "must not contain half of a surrogate pair");

/** ISO 8601 in UTC with milliseconds, so that text order is time order. */
export const timeSchema = z.iso.datetime({ precision: 3 });

/** Secure random fractions, drawn in bulk: one call per id would dominate the cost of making it. */
function pooledRandom(): () => number {
  const pool = new Uint32Array(1024);
  let used = pool.length;
  return () => {
    if (used === pool.length) {
      crypto.getRandomValues(pool);
      used = 0;
    }
    return (pool[used++] as number) / 2 ** 32;
  };
}
