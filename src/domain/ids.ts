import { monotonicFactory } from "ulid";
import { z } from "zod";

const mint = monotonicFactory();

/** A ULID. Ids minted by one process sort in the order they were minted, also within a millisecond. */
export const newId = (): string => mint();

/** Text order of ids equals mint order, so the time now is the one to stamp beside a freshly minted id. */
export const now = (): string => new Date().toISOString();

/** An id from outside: anything a person may type, but no control characters (they separate keys inside the store). */
export const idSchema = z
  .string()
  .min(1)
  .max(200)
  .regex(/^\P{Cc}*$/u, "must not contain control characters")
  .refine((id) => id.isWellFormed(), "must not contain half of a surrogate pair");

/** ISO 8601 in UTC with milliseconds, so that text order is time order. */
export const timeSchema = z.iso.datetime({ precision: 3 });
