import { accessSync, constants, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { threadId } from "node:worker_threads";
import { EverstepError } from "../../domain/errors.ts";
import { makePrivateFolder } from "../../files/private-folder.ts";
import { CREATE_REVISION, CREATE_TABLES, createViews } from "./journal-sql.ts";
import { FORMAT, type FolderFormat, OLDEST_FORMAT } from "./migrations.ts";
import { readWriteAheadLog } from "./write-ahead-log.ts";

const APPLICATION_ID = 0x45_56_53_54;
/** Where the first page of a database has them. */
const USER_VERSION_AT = 60;
const APPLICATION_ID_AT = 68;
/** More than an empty journal takes. */
const PROBE_BYTES = 256 * 1024;

const JOURNAL = "journal.sqlite";
export const counterPath = (folder: string): string => join(folder, "journal.counter");
export const journalPath = (folder: string): string => join(folder, JOURNAL);
const logPath = (folder: string): string => `${journalPath(folder)}-wal`;
const ownerPath = (folder: string): string => join(folder, "owner.pid");

/** `format` is null where the journal is new. */
export type JournalFile = { database: DatabaseSync; format: number | null };

/**
 * Opens the journal of a folder, made when absent, and holds it for this process alone until it is closed or dies. It may
 * be of an older format; `createTables` is for once it is not.
 */
export function openJournalFile(folder: string, newest = FORMAT): JournalFile {
  try {
    refuseForeignFile(folder, newest);
    makePrivateFolder(folder, JOURNAL);
    requireSpace(folder);
  } catch (error) {
    throw error instanceof EverstepError ? error : folderError(folder, error);
  }
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(journalPath(folder), { timeout: 0 });
    lock(database);
    const format = checkOrigin(database, folder, newest);
    if (format !== null && format < newest) checkStructure(database, folder);
    writeFileSync(ownerPath(folder), `${process.pid}\n`);
    return { database, format };
  } catch (error) {
    database?.close();
    throw toStoreError(error, folder);
  }
}

/** Whether the process that had the folder last did not close it. Asked before it is opened. */
export const wasLeftOpen = (folder: string): boolean => existsSync(ownerPath(folder));
export const noteClosed = (folder: string): void => rmSync(ownerPath(folder), { force: true });

/** SQLite says little about a folder that cannot be written to, so a file of ours tries it first. */
function requireSpace(folder: string): void {
  const probe = join(folder, `probe-${process.pid}-${threadId}.tmp`);
  try {
    writeFileSync(probe, Buffer.alloc(PROBE_BYTES), { flush: true });
  } finally {
    rmSync(probe, { force: true });
  }
}

/**
 * A database that is not ours, or newer than this program, is looked at before anything in it is changed. SQLite looks at the
 * file as one that nobody writes, so that it makes no files beside it, and what is in the log is read from there. (A file that
 * this process opens and closes by itself loses the locks that it holds on it.)
 */
function refuseForeignFile(folder: string, newest: number): void {
  if (!existsSync(journalPath(folder))) return;
  const log = readWriteAheadLog(logPath(folder));
  const first = log?.pages.get(1);
  if (log && first) {
    checkHeader(folder, {
      application: log.content.readUInt32BE(first.offset + APPLICATION_ID_AT),
      format: log.content.readUInt32BE(first.offset + USER_VERSION_AT),
      isNew: false,
      newest,
    });
    return;
  }
  let database: DatabaseSync | undefined;
  try {
    const url = pathToFileURL(journalPath(folder));
    url.searchParams.set("immutable", "1");
    database = new DatabaseSync(url, { readOnly: true });
    checkOrigin(database, folder, newest);
  } catch (error) {
    if (error instanceof EverstepError) throw error;
    // What else is wrong with it is told when it is opened for good.
  } finally {
    database?.close();
  }
}

// The exclusive lock is the one-process rule: SQLite takes it with the first write and the system frees it with the process.
function lock(database: DatabaseSync): void {
  database.exec("PRAGMA auto_vacuum = INCREMENTAL");
  database.exec("PRAGMA locking_mode = EXCLUSIVE");
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA wal_autocheckpoint = 4000");
  database.exec("PRAGMA cache_size = -16384");
  database.exec("BEGIN IMMEDIATE; COMMIT");
}

function checkOrigin(database: DatabaseSync, folder: string, newest: number): number | null {
  return checkHeader(folder, {
    application: pragma(database, "application_id"),
    format: pragma(database, "user_version"),
    isNew: database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined,
    newest,
  });
}

/** Answers the format; null where the journal is new. */
function checkHeader(
  folder: string,
  { application, format, isNew, newest }: { application: number; format: number; isNew: boolean; newest: number },
): number | null {
  if (!isNew && application !== APPLICATION_ID) throw foreign(folder);
  if (format > newest) throw newer(folder, format, newest);
  if (isNew) return null;
  if (format < OLDEST_FORMAT) throw older(folder, format);
  return format;
}

const foreign = (folder: string): EverstepError =>
  new EverstepError(
    "store_foreign",
    `${journalPath(folder)} is a database of another program`,
    "name another folder in EVERSTEP_STORE",
  );

const newer = (folder: string, format: number, newest: number): EverstepError =>
  new EverstepError(
    "store_newer",
    `${resolve(folder)} was written by a newer Everstep (format ${format}, this one knows ${newest})`,
    "start the newer version, or name another folder in EVERSTEP_STORE",
  );

const older = (folder: string, format: number): EverstepError =>
  new EverstepError(
    "store_older",
    `${resolve(folder)} was written by an older Everstep (format ${format}, this one upgrades from ${OLDEST_FORMAT})`,
    "start the version that wrote it, or name another folder in EVERSTEP_STORE",
  );

/** Before an upgrade, when rows may have no checksums yet. */
function checkStructure(database: DatabaseSync, folder: string): void {
  const damage = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  if (damage !== "ok") throw corrupt(folder, damage);
}

/** What a journal of this program's format has; what is there already is left alone. */
export function createTables(database: DatabaseSync, format: FolderFormat): void {
  database.exec(
    [
      "BEGIN",
      ...CREATE_TABLES,
      // What is large and seldom changes stays out of the row that every step rewrites.
      "CREATE TABLE IF NOT EXISTS session_documents (session_id TEXT PRIMARY KEY, params TEXT NOT NULL, context TEXT, sum INTEGER)",
      // A message keeps its id for good, so that a repeated post is known as one after it was moved.
      "CREATE TABLE IF NOT EXISTS message_keys (message_id TEXT PRIMARY KEY) WITHOUT ROWID",
      "CREATE TABLE IF NOT EXISTS message_numbers (conversation_id TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID",
      ...CREATE_REVISION,
      // What of a table is in LanceDB and on disk: its version, and the position up to which rows were moved.
      "CREATE TABLE IF NOT EXISTS archived (name TEXT PRIMARY KEY, version INTEGER NOT NULL, pos INTEGER NOT NULL) WITHOUT ROWID",
      "CREATE INDEX IF NOT EXISTS sessions_of_agent_by_number ON packed_agent_state (agent_id)",
      "CREATE INDEX IF NOT EXISTS sessions_of_status_by_number ON packed_agent_state (status)",
      // By whom sessions were started: an index of few rows, beside rows that every step rewrites.
      "CREATE TABLE IF NOT EXISTS spawned_sessions (spawner_id TEXT, session_id TEXT, PRIMARY KEY (spawner_id, session_id)) WITHOUT ROWID",
      // Earlier versions ordered by time.
      ...["sessions_by_time", "sessions_of_agent", "sessions_by_status", "conversations_by_time"].map(
        (index) => `DROP INDEX IF EXISTS ${index}`,
      ),
      "CREATE INDEX IF NOT EXISTS participants_of_conversation ON packed_conversation_participants (conversation_id)",
      ...createViews(format.tables),
      `PRAGMA application_id = ${APPLICATION_ID}`,
      `PRAGMA user_version = ${format.number}`,
      "COMMIT",
    ].join(";\n"),
  );
}

const pragma = (database: DatabaseSync, name: string): number =>
  Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);

const SQLITE_ERROR = 1;
const OTHER_NUMBER = /^Value is too large to be represented as a JavaScript number/;
const OTHER_CONTENT = /^(malformed|no such (table|column|index)|unsupported file format|table \S+ has )/;

/** What went wrong inside SQLite, as an error that tells the reader what to do. */
export function toStoreError(error: unknown, folder: string): unknown {
  const { errcode, code, message } = error as { errcode?: number; code?: string; message?: string };
  // A number beyond all that is ever written, a row's text that is none, a schema that is not the one that was made.
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
        "stop it, or use EVERSTEP_STORE=postgres://… to have several",
        error,
      );
    case 8:
      return readOnly(where, error);
    case 11:
    case 26:
      return corrupt(folder, error);
    case 13:
      return new EverstepError(
        "store_full",
        `no space is left for ${where}`,
        "free some disk space; nothing was lost and work goes on by itself",
        error,
      );
    case 14:
      return folderError(folder, error);
    // Too large, a constraint, a value of the wrong type or out of range: it is what was to be written, not the disk.
    case 18:
    case 19:
    case 20:
    case 25:
      return new EverstepError(
        "store_refused",
        `${where} does not take this (${(error as Error).message})`,
        "make what is to be stored smaller if it is large, else report it; nothing of it was stored",
        error,
      );
    default:
      return new EverstepError(
        "store_unavailable",
        `${where} cannot be written (${(error as Error).message})`,
        "look at the disk and the system's log",
        error,
      );
  }
}

export const corrupt = (folder: string, cause: unknown): EverstepError =>
  new EverstepError(
    "store_corrupt",
    `${journalPath(folder)} is damaged (${cause instanceof Error ? cause.message : String(cause)})`,
    AFTER_DAMAGE,
    cause,
  );
export const AFTER_DAMAGE =
  "stop Everstep, keep a copy of the folder, see what is affected with `everstep check`, and restore the folder from a backup";

/** What SQLite took from the log goes into the journal as it closes, so a copy of the log is kept for whoever looks at it. */
export function lostCommits(folder: string, place: { counted: string; found: string }): EverstepError {
  if (existsSync(logPath(folder))) copyFileSync(logPath(folder), `${logPath(folder)}.damaged`);
  return new EverstepError(
    "store_corrupt",
    `${logPath(folder)} is damaged, cut or missing: the journal ends at ${place.found}, and ${place.counted} was on disk`,
    `restore the folder from a backup; to go on without what was lost, remove ${counterPath(folder)}`,
  );
}

const readOnly = (where: string, cause: unknown): EverstepError =>
  new EverstepError(
    "store_read_only",
    `${where} cannot be written to`,
    "make it writable, or name another folder in EVERSTEP_STORE",
    cause,
  );

function folderError(folder: string, thrown: unknown): EverstepError {
  const cause = (thrown as NodeJS.ErrnoException).code === "ENOENT" ? whyNotMade(folder, thrown) : thrown;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === "ENOSPC") return toStoreError({ errcode: 13 }, folder) as EverstepError;
  if (code === "EROFS" || code === "EACCES" || code === "EPERM") return readOnly(resolve(folder), cause);
  return new EverstepError(
    "store_unavailable",
    `${resolve(folder)} cannot be used as a folder (${message})`,
    "name another folder in EVERSTEP_STORE",
    cause,
  );
}

/** Making folders below one that cannot be written to only says that they are missing: the one above tells why. */
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
