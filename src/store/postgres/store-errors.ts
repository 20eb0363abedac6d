import { EverstepError } from "../../domain/errors.ts";

/** States of the server in which the same request may succeed a little later. */
const OUT_OF_REACH =
  /^(?:08|57P0|53[023]|58)|^(?:ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CONN)/;
/** Another transaction was in the way: deadlock, serialization, a lock that was not to be had, an id inserted meanwhile. */
const COLLISION = /^(?:40P01|40001|55P03|23505)$/;

const codeOf = (error: unknown): string => (error as { code?: string } | null)?.code ?? "";

export const isOutOfReach = (error: unknown): boolean => OUT_OF_REACH.test(codeOf(error));
/** The connection was not made, so nothing was asked of the server. */
export const wasNotSent = (error: unknown): boolean =>
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CONNECT_TIMEOUT|57P03|53300)$/.test(codeOf(error));
export const isCollision = (error: unknown): boolean => COLLISION.test(codeOf(error));

/** What the driver threw, as an error with a next move. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof EverstepError) return error;
  const code = codeOf(error);
  const why = error instanceof Error ? error.message : String(error);
  if (code.startsWith("531"))
    return new EverstepError("store_full", `PostgreSQL has no room left (${why})`, "free some on its disk", error);
  if (code === "25006")
    return new EverstepError(
      "store_read_only",
      "PostgreSQL takes no writes",
      "point EVERSTEP_STORE at the primary server",
      error,
    );
  if (code === "28P01" || code === "28000" || code === "3D000" || code === "42501")
    return new EverstepError(
      "store_unavailable",
      `PostgreSQL lets us not in (${why})`,
      "check user, password, database and grants in EVERSTEP_STORE",
      error,
    );
  if (isOutOfReach(error) || isCollision(error))
    return new EverstepError(
      "store_unavailable",
      `PostgreSQL is out of reach (${why})`,
      "check that it runs and can be reached; Everstep goes on by itself once it is back",
      error,
    );
  return error;
}

export const closed = (): EverstepError =>
  new EverstepError(
    "store_closed",
    "the store was closed",
    "this is a fault in Everstep if it was not stopping; please report it",
  );

export const unanswered = (): unknown =>
  toStoreError(Object.assign(new Error("it does not answer"), { code: "ETIMEDOUT" }));
