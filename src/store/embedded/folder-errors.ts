import { accessSync, constants, copyFileSync, existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { EverstepError } from "../../domain/errors.ts";
import { full, messageOf, readOnly, unavailable } from "../store-errors.ts";

export const JOURNAL = "journal.sqlite";
export const counterPath = (folder: string): string => join(folder, "journal.counter");
export const journalPath = (folder: string): string => join(folder, JOURNAL);
export const logPath = (folder: string): string => `${journalPath(folder)}-wal`;
export const ownerPath = (folder: string): string => join(folder, "owner.pid");

const SQLITE_ERROR = 1;
const OTHER_NUMBER = /^Value is too large to be represented as a JavaScript number/;
const OTHER_CONTENT = /^(malformed|no such (table|column|index)|unsupported file format|table \S+ has )/;

/** Turns an SQLite error into one that says what to do. */
export function toStoreError(error: unknown, folder: string): unknown {
  const { errcode, code, message } = error as { errcode?: number; code?: string; message?: string };
  // A number larger than any we write, text that is not valid, or a different schema.
  const isOtherContent = errcode === SQLITE_ERROR ? OTHER_CONTENT : code === "ERR_OUT_OF_RANGE" ? OTHER_NUMBER : null;
  if (isOtherContent?.test(message ?? "")) return corrupt(folder, error);
  if (errcode === undefined) return error;
  const where = resolve(folder);
  switch (errcode & 0xff) {
    case 5:
    case 6:
      return new EverstepError(
        "store_locked",
        `another process${ownerNote(folder)} uses ${where}`,
        "stop it, or use EVERSTEP_STORE=postgres://… to run several",
        error,
      );
    case 8:
      return notWritable(where, error);
    case 11:
    case 26:
      return corrupt(folder, error);
    case 13:
      return full(
        `no space is left for ${where}`,
        error,
        "free some disk space; nothing was lost, and work continues on its own",
      );
    case 14:
      return folderError(folder, error);
    // Too large, a constraint, a wrong type or out of range: the data is at fault, not the disk.
    case 18:
    case 19:
    case 20:
    case 25:
      return new EverstepError(
        "store_refused",
        `${where} cannot store this (${(error as Error).message})`,
        "if the data is large, make it smaller, else report a bug; nothing of it was stored",
        error,
      );
    default:
      return unavailable(
        `${where} cannot be written (${messageOf(error)})`,
        "check the disk and the system's log",
        error,
      );
  }
}

const AFTER_DAMAGE =
  "stop Everstep, keep a copy of the folder, run `everstep check` to see what is affected, and restore the folder from a backup";

export const damaged = (path: string, cause: unknown): EverstepError =>
  new EverstepError("store_corrupt", `${resolve(path)} is damaged (${messageOf(cause)})`, AFTER_DAMAGE, cause);

export const corrupt = (folder: string, cause: unknown): EverstepError => damaged(journalPath(folder), cause);

/** SQLite merges the log into the journal as it closes, so a copy of the log is kept for inspection. */
export function lostCommits(folder: string, place: { counted: string; actual: string }): EverstepError {
  if (existsSync(logPath(folder))) copyFileSync(logPath(folder), `${logPath(folder)}.damaged`);
  return new EverstepError(
    "store_corrupt",
    `${logPath(folder)} is damaged, truncated or missing: the journal ends at ${place.actual}, but ${place.counted} was on disk`,
    `restore the folder from a backup; to continue without the lost commits, remove ${counterPath(folder)}`,
  );
}

const notWritable = (path: string, cause: unknown): EverstepError =>
  readOnly(`${path} cannot be written to`, "make it writable, or use another folder in EVERSTEP_STORE", cause);

export function folderError(folder: string, thrown: unknown): EverstepError {
  const cause = (thrown as NodeJS.ErrnoException).code === "ENOENT" ? whyNotMade(folder, thrown) : thrown;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === "ENOSPC") return toStoreError({ errcode: 13 }, folder) as EverstepError;
  if (code === "EROFS" || code === "EACCES" || code === "EPERM") return notWritable(resolve(folder), cause);
  return unavailable(
    `${resolve(folder)} cannot be used as a folder (${message})`,
    "use another folder in EVERSTEP_STORE",
    cause,
  );
}

/** Creating folders below an unwritable one only reports that they are missing; the folder above shows why. */
function whyNotMade(folder: string, thrown: unknown): unknown {
  let above = resolve(folder);
  while (!existsSync(above)) above = dirname(above);
  try {
    accessSync(above, constants.W_OK);
    return thrown;
  } catch (error) {
    return error;
  }
}

function ownerNote(folder: string): string {
  try {
    return ` (pid ${Number.parseInt(readFileSync(ownerPath(folder), "utf8"), 10)})`;
  } catch {
    return "";
  }
}
