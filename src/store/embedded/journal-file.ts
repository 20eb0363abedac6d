import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { threadId } from "node:worker_threads";
import { EverstepError } from "../../domain/errors.ts";
import { makePrivateFolder } from "../../files/private-folder.ts";
import { corrupt, folderError, JOURNAL, journalPath, logPath, ownerPath, toStoreError } from "./folder-errors.ts";
import { CHECKPOINT_PAGES, CREATE_REVISION, CREATE_TABLES, createViews } from "./journal-database.ts";
import { FORMAT, type FolderFormat, OLDEST_FORMAT } from "./migrations.ts";

const APPLICATION_ID = 0x45_56_53_54;
/** Offsets in a database's first page. */
const USER_VERSION_AT = 60;
const APPLICATION_ID_AT = 68;
/** More than an empty journal takes. */
const PROBE_BYTES = 256 * 1024;

/** `format` is null for a new journal. */
export type JournalFile = { database: DatabaseSync; format: number | null };

/**
 * Opens a folder's journal, creating it if absent, and locks it for this process until it is closed or dies. It may have an
 * older format; call `createTables` once it is upgraded.
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

/** Whether the last process that used the folder did not close it. Call it before opening. */
export const wasLeftOpen = (folder: string): boolean => existsSync(ownerPath(folder));
export const noteClosed = (folder: string): void => rmSync(ownerPath(folder), { force: true });

/** SQLite reports little about an unwritable folder, so we write a probe file first. */
function requireSpace(folder: string): void {
  const probe = join(folder, `probe-${process.pid}-${threadId}.tmp`);
  try {
    writeFileSync(probe, Buffer.alloc(PROBE_BYTES), { flush: true });
  } finally {
    rmSync(probe, { force: true });
  }
}

/**
 * Inspects a database that may be foreign or newer before anything in it is changed. SQLite opens the file as immutable, so
 * that it creates no files beside it, and the log is read directly. (A process that opens and closes a file loses its locks on
 * it.)
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
    // Other problems are reported when it is opened properly.
  } finally {
    database?.close();
  }
}

// The exclusive lock enforces the single owner: SQLite takes it with the first write, and the system releases it with the
// process.
function lock(database: DatabaseSync): void {
  database.exec("PRAGMA auto_vacuum = INCREMENTAL");
  database.exec("PRAGMA locking_mode = EXCLUSIVE");
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
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

/** Returns the format; null for a new journal. */
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
    `${journalPath(folder)} belongs to another program`,
    "use another folder in EVERSTEP_STORE",
  );

const newer = (folder: string, format: number, newest: number): EverstepError =>
  new EverstepError(
    "store_newer",
    `${resolve(folder)} was written by a newer Everstep (format ${format}; this version supports ${newest})`,
    "start the newer version, or use another folder in EVERSTEP_STORE",
  );

const older = (folder: string, format: number): EverstepError =>
  new EverstepError(
    "store_older",
    `${resolve(folder)} was written by an older Everstep (format ${format}; this version upgrades from ${OLDEST_FORMAT})`,
    "start the version that wrote it, or use another folder in EVERSTEP_STORE",
  );

/** Before an upgrade, when rows may not have checksums yet. */
function checkStructure(database: DatabaseSync, folder: string): void {
  const damage = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  if (damage !== "ok") throw corrupt(folder, damage);
}

/** Creates what a journal of this format needs; existing tables stay. */
export function createTables(database: DatabaseSync, format: FolderFormat): void {
  database.exec(
    [
      "BEGIN",
      ...CREATE_TABLES,
      // Large, rarely changed values stay out of the row that every step rewrites.
      "CREATE TABLE IF NOT EXISTS session_documents (session_id TEXT PRIMARY KEY, params TEXT NOT NULL, context TEXT, sum INTEGER)",
      // A message's id is never reused, so that a repeated post is recognized after the message was archived.
      "CREATE TABLE IF NOT EXISTS message_keys (message_id TEXT PRIMARY KEY) WITHOUT ROWID",
      "CREATE TABLE IF NOT EXISTS message_numbers (conversation_id TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID",
      ...CREATE_REVISION,
      // What is archived of a table: its LanceDB version, and the position up to which rows were moved.
      "CREATE TABLE IF NOT EXISTS archived (name TEXT PRIMARY KEY, version INTEGER NOT NULL, pos INTEGER NOT NULL) WITHOUT ROWID",
      "CREATE INDEX IF NOT EXISTS sessions_of_agent_by_number ON packed_agent_state (agent_id)",
      "CREATE INDEX IF NOT EXISTS sessions_of_status_by_number ON packed_agent_state (status)",
      // Who started which session: a small index, apart from rows that every step rewrites.
      "CREATE TABLE IF NOT EXISTS spawned_sessions (spawner_id TEXT, session_id TEXT, PRIMARY KEY (spawner_id, session_id)) WITHOUT ROWID",
      // Earlier versions sorted by time.
      ...["sessions_by_time", "sessions_of_agent", "sessions_by_status", "conversations_by_time"].map(
        (index) => `DROP INDEX IF EXISTS ${index}`,
      ),
      "CREATE INDEX IF NOT EXISTS participants_of_conversation ON packed_conversation_participants (conversation_id)",
      "CREATE INDEX IF NOT EXISTS deliveries_of_webhook ON packed_webhook_deliveries (webhook_id)",
      "CREATE INDEX IF NOT EXISTS deliveries_due ON packed_webhook_deliveries (webhook_id, next_attempt_at) WHERE status = 'pending'",
      "CREATE INDEX IF NOT EXISTS deliveries_in_order ON packed_webhook_deliveries (webhook_id, session_id) WHERE status = 'pending'",
      "CREATE INDEX IF NOT EXISTS ranges_of_owner ON packed_archived_ranges (owner_id)",
      "CREATE INDEX IF NOT EXISTS ranges_of_volume ON packed_archived_ranges (volume_id)",
      ...createViews(format.tables),
      `PRAGMA application_id = ${APPLICATION_ID}`,
      `PRAGMA user_version = ${format.number}`,
      "COMMIT",
    ].join(";\n"),
  );
}

const pragma = (database: DatabaseSync, name: string): number =>
  Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);

/** A page as a commit left it in the log. */
type LoggedPage = { page: number; offset: number };

/** What SQLite would read from a write-ahead log: the last version of each page of every complete commit. */
type WriteAheadLog = {
  content: Buffer;
  page_size: number;
  pages: ReadonlyMap<number, LoggedPage>;
  /** The database's size in pages after the last commit; null without a commit. */
  database_pages: number | null;
};

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;

/**
 * Reads the log beside a journal without SQLite, which would change both. Every frame has a checksum over everything before it;
 * the log ends at the first wrong one.
 */
function readWriteAheadLog(path: string): WriteAheadLog | null {
  if (!existsSync(path)) return null;
  const content = readFileSync(path);
  if (content.length < HEADER_BYTES) return null;
  const magic = content.readUInt32BE(0);
  if (magic !== MAGIC && magic !== MAGIC + 1) return null;
  const sum = new LogChecksum(content, magic === MAGIC);
  sum.add(0, HEADER_BYTES - 8);
  if (!sum.equals(HEADER_BYTES - 8)) return null;
  const page_size = content.readUInt32BE(8);
  const pages = new Map<number, LoggedPage>();
  let database_pages: number | null = null;
  let uncommitted: LoggedPage[] = [];
  const frame = FRAME_HEADER_BYTES + page_size;
  for (let at = HEADER_BYTES; at + frame <= content.length; at += frame) {
    const isOfThisLog = content.compare(content, 16, 24, at + 8, at + 16) === 0;
    sum.add(at, 8);
    sum.add(at + FRAME_HEADER_BYTES, page_size);
    if (!isOfThisLog || !sum.equals(at + 16)) break;
    uncommitted.push({ page: content.readUInt32BE(at), offset: at + FRAME_HEADER_BYTES });
    const size = content.readUInt32BE(at + 4);
    if (size === 0) continue;
    for (const logged of uncommitted) pages.set(logged.page, logged);
    database_pages = size;
    uncommitted = [];
  }
  return { content, page_size, pages, database_pages };
}

/** SQLite's log checksum: two sums over pairs of words, in the byte order given by the log's first word. */
class LogChecksum {
  readonly #content: Buffer;
  readonly #view: DataView;
  readonly #littleEndian: boolean;
  #first = 0;
  #second = 0;

  constructor(content: Buffer, littleEndian: boolean) {
    this.#content = content;
    this.#view = new DataView(content.buffer, content.byteOffset, content.length);
    this.#littleEndian = littleEndian;
  }

  add(from: number, bytes: number): void {
    const view = this.#view;
    const littleEndian = this.#littleEndian;
    let first = this.#first;
    let second = this.#second;
    for (let at = from; at < from + bytes; at += 8) {
      first = (first + view.getUint32(at, littleEndian) + second) >>> 0;
      second = (second + view.getUint32(at + 4, littleEndian) + first) >>> 0;
    }
    this.#first = first;
    this.#second = second;
  }

  equals(at: number): boolean {
    return this.#content.readUInt32BE(at) === this.#first && this.#content.readUInt32BE(at + 4) === this.#second;
  }
}

/** The format of an unused data folder, and the newest format; null if there is no journal yet. Does not upgrade it. */
export function inspectFolder(folder: string): { format: number; newest: number } | null {
  if (!existsSync(journalPath(folder))) return null;
  const isLeftOpen = wasLeftOpen(folder);
  const { database, format } = openJournalFile(folder);
  database.close();
  // The next start must still detect an earlier crash.
  if (!isLeftOpen) noteClosed(folder);
  return { format: format ?? FORMAT, newest: FORMAT };
}
