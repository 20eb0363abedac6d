import { EverstepError } from "../../domain/errors.ts";
import { full, messageOf, outOfReach, readOnly, unavailable } from "../store-errors.ts";

/** What a driver's or a server's error has. Servers' own have a severity. */
export type Failure = { code?: unknown; severity?: unknown };

/** States of the server in which the same request may succeed a little later. */
const OUT_OF_REACH =
  /^(?:08|57P0|53[023]|58|25P03)|^(?:ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EMFILE|CONN)/;
/**
 * Another transaction or a time limit was in the way: deadlock, serialization, a lock that was not to be had, a statement that was
 * cancelled, an id inserted meanwhile.
 */
const COLLISION = /^(?:40P01|40001|55P03|57014|23505)$/;

const failureOf = (error: unknown): Failure => (typeof error === "object" && error !== null ? error : {});
const codeOf = (error: unknown): string => {
  const { code } = failureOf(error);
  return typeof code === "string" ? code : "";
};

/** The server ended the connection along with the statement. */
const endedConnection = (error: unknown): boolean => {
  const { severity } = failureOf(error);
  return severity === "FATAL" || severity === "PANIC";
};

export const isOutOfReach = (error: unknown): boolean => OUT_OF_REACH.test(codeOf(error)) || endedConnection(error);

/** The connection was not made, so nothing was asked of the server. */
export const wasNotSent = (error: unknown): boolean =>
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EMFILE|CONNECT_TIMEOUT|57P03|53300)$/.test(
    codeOf(error),
  );

/** The server answered that the statement failed, so nothing of it is left. Any other failure leaves it in doubt. */
export const wasRefused = (error: unknown): boolean =>
  failureOf(error).severity === "ERROR" && !/^08|^40003$/.test(codeOf(error));

export const isCollision = (error: unknown): boolean => wasRefused(error) && COLLISION.test(codeOf(error));
/** A collision that comes from what is written, not from when. */
export const isDuplicate = (error: unknown): boolean => codeOf(error) === "23505";

/** What the driver threw, as an error with a next move. */
export function toStoreError(error: unknown): EverstepError {
  if (error instanceof EverstepError) return error;
  const code = codeOf(error);
  const why = messageOf(error);
  if (code.startsWith("531")) return full(`PostgreSQL has no room left (${why})`, error, "free some on its disk");
  if (code === "25006")
    return readOnly("PostgreSQL takes no writes", "point EVERSTEP_STORE at the primary server", error);
  if (NOT_LET_IN.test(code))
    return unavailable(
      `PostgreSQL refuses the connection (${why})`,
      "check user, password, database and grants in EVERSTEP_STORE",
      error,
    );
  if (isCollision(error))
    return unavailable(
      `PostgreSQL could not do it in time (${why})`,
      "look for a transaction that holds locks, or a short statement_timeout; Everstep goes on by itself",
      error,
    );
  if (wasRefused(error))
    return new EverstepError(
      "store_refused",
      `PostgreSQL refused a statement (SQLSTATE ${code}: ${why})`,
      "look at the server's log; nothing of the statement was stored",
      error,
    );
  return outOfReach(why, error);
}

/** Wrong user, password or database, or a right that is missing. */
const NOT_LET_IN = /^(?:28P01|28000|3D000|42501)$/;
/** A server that does not let us in does not do so a little later, either. */
export const isNotLetIn = (error: unknown): boolean => NOT_LET_IN.test(codeOf(error));
