import { monotonicFactory } from "ulid";
import { z } from "zod";

const mint = monotonicFactory(pooledRandom());

/** A ULID. Ids minted by one process sort in the order they were minted, also within a millisecond. */
export const newId = (): string => mint();

/** Text order of ids equals mint order, so the time now is the one to stamp beside a freshly minted id. */
export function now(): string {
  const ms = Date.now();
  if (ms !== lastTime.ms) lastTime = { ms, text: new Date(ms).toISOString() };
  return lastTime.text;
}
/** Many rows are written within a millisecond, and a time as text takes long to make. */
let lastTime = { ms: Number.NaN, text: "" };

/** An id from outside: anything a person may type, but no control characters (they separate keys inside the store). */
export const idSchema = z
  .string()
  .min(1)
  .max(200)
  .regex(/^\P{Cc}*$/u, "must not contain control characters")
  .refine((id) => id.isWellFormed(), "must not contain half of a surrogate pair");

/** ISO 8601 in UTC with milliseconds, so that text order is time order. */
export const timeSchema = z.iso.datetime({ precision: 3 });

/** Secure random fractions, drawn many at a time: one by one they would cost more than all else about an id. */
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
