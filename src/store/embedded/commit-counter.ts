import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import type { EverstepError } from "../../domain/errors.ts";
import { VOLUME_TABLES, WEBHOOK_TABLES } from "../schema.ts";
import { corrupt, lostCommits } from "./folder-errors.ts";
import { JOURNAL_TABLES, type JournalTable, PACKED } from "./journal-database.ts";
import { isWholeRow, nameOfRow, sumOfDocuments, sumOfValues } from "./row-checksums.ts";
import { isJournalOnly, type Values } from "./tables.ts";

/** Every table of the journal. */
export type SummedTable = JournalTable | "session_documents" | "message_keys" | "message_numbers" | "archived";
/** In the order of the counter's file. Append new tables at the end: an earlier version's file has only the first ones. */
const SUMMED_TABLES: readonly SummedTable[] = [
  ...JOURNAL_TABLES.filter((table) => !isJournalOnly(table)),
  "session_documents",
  "message_keys",
  "message_numbers",
  "archived",
  ...WEBHOOK_TABLES,
  ...VOLUME_TABLES,
];
const BEFORE_VOLUMES = SUMMED_TABLES.length - VOLUME_TABLES.length;
/** The numbers of tables in all versions of the file. */
const TABLE_COUNTS = [SUMMED_TABLES.length, BEFORE_VOLUMES, BEFORE_VOLUMES - WEBHOOK_TABLES.length];

/**
 * Row counts and summed checksums per table. Stored beside the commit counter, so that a start that recomputes them notices
 * rows that disappeared or reverted.
 */
export class JournalTotals {
  /** Two numbers per table. */
  static readonly LENGTH = SUMMED_TABLES.length * 2;
  readonly #now = new Float64Array(JournalTotals.LENGTH);
  readonly #kept = new Float64Array(JournalTotals.LENGTH);

  static from(numbers: Float64Array): JournalTotals {
    const totals = new JournalTotals();
    totals.#now.set(numbers);
    totals.keep();
    return totals;
  }

  copyTo(numbers: Float64Array): void {
    numbers.set(this.#now);
  }

  add(table: SummedTable, sum: number): void {
    this.#change(INDEX[table], 1, sum);
  }

  remove(table: SummedTable, sum: number): void {
    this.#change(INDEX[table], -1, -sum);
  }

  /** A row replaces another. */
  replace(table: SummedTable, before: number, sum: number): void {
    this.#change(INDEX[table], 0, sum - before);
  }

  clear(table: SummedTable): void {
    this.#now.fill(0, INDEX[table] * 2, INDEX[table] * 2 + 2);
  }

  /** The changes are committed. */
  keep(): void {
    this.#kept.set(this.#now);
  }

  /** The changes since `keep` were rolled back. */
  undo(): void {
    this.#now.set(this.#kept);
  }

  /** The first table in which the other has more, fewer or different rows. */
  difference(other: JournalTotals): { table: SummedTable; rows: number; expected: number } | null {
    for (const [index, table] of SUMMED_TABLES.entries()) {
      const [rows, sum] = [this.#now[index * 2] ?? 0, this.#now[index * 2 + 1]];
      const [otherRows, otherSum] = [other.#now[index * 2] ?? 0, other.#now[index * 2 + 1]];
      if (rows !== otherRows || sum !== otherSum) return { table, rows: otherRows, expected: rows };
    }
    return null;
  }

  #change(index: number, rows: number, sum: number): void {
    const at = index * 2;
    this.#now[at] = (this.#now[at] ?? 0) + rows;
    this.#now[at + 1] = ((this.#now[at + 1] ?? 0) + sum) | 0;
  }
}

const INDEX = Object.fromEntries(SUMMED_TABLES.map((table, index) => [table, index])) as Record<SummedTable, number>;

/**
 * How far the journal was written and what it contained then, stored apart from it: SQLite takes a truncated, damaged or
 * missing log for a shorter one, and acknowledged commits would disappear silently.
 *
 * COUNTER-1  It only records what is on disk, so it is never ahead of the journal. Every transaction moves the journal forward:
 *            a commit to a higher position, any other to a higher revision. A journal behind the recorded point has lost
 *            transactions.
 * COUNTER-2  The totals are those at exactly that point, so a journal at that point has these totals.
 * COUNTER-3  It is written alternately to two slots, each with a checksum: if one is torn or damaged, the older one remains.
 * COUNTER-4  A failed write does not fail the commit, which is on disk: the counter stays behind, and less is noticed.
 *
 * It is not synced with every commit, so after a power loss it may be behind as well.
 */
export class CommitCounter {
  readonly #file: number;
  readonly #slot = new Slot();
  #isSynced = true;

  constructor(path: string) {
    const before = newestSlot(path);
    this.#file = openSync(path, existsSync(path) ? "r+" : "w+", 0o600);
    this.#slot.numbers[MAGIC_AT] = MAGIC;
    this.#slot.numbers[SEQUENCE_AT] = before?.numbers[SEQUENCE_AT] ?? 0;
  }

  /** Null if nothing can be read. */
  static read(path: string): Counted | null {
    const numbers = newestSlot(path)?.numbers;
    if (!numbers) return null;
    return {
      position: numbers[POSITION_AT] ?? 0,
      revision: numbers[REVISION_AT] ?? 0,
      totals: JournalTotals.from(numbers.subarray(TOTALS_AT, -1)),
    };
  }

  record({ position, revision, totals }: Counted): void {
    const { numbers, bytes } = this.#slot;
    const sequence = (numbers[SEQUENCE_AT] ?? 0) + 1;
    numbers[SEQUENCE_AT] = sequence;
    numbers[POSITION_AT] = position;
    numbers[REVISION_AT] = revision;
    totals.copyTo(this.#slot.totals);
    this.#slot.seal();
    try {
      writeSync(this.#file, bytes, 0, bytes.length, (sequence % 2) * SECTOR); // COUNTER-3
      this.#isSynced = false;
    } catch {
      // COUNTER-4
    }
  }

  sync(): void {
    if (this.#isSynced) return;
    fdatasyncSync(this.#file);
    this.#isSynced = true;
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** A point in the journal's history, and the totals there. */
export type Counted = { position: number; revision: number; totals: JournalTotals };

const MAGIC = 0x45_56_43_31;
/** Each slot has its own sector. */
const SECTOR = 512;
const MAGIC_AT = 0;
const SEQUENCE_AT = 1;
const POSITION_AT = 2;
const REVISION_AT = 3;
const TOTALS_AT = 4;

/** Eight-byte numbers, the checksum last. */
class Slot {
  readonly bytes: Buffer;
  readonly numbers: Float64Array;
  readonly totals: Float64Array;
  readonly #summed: Buffer;
  readonly #sumAt: number;

  /** `tables`: how many tables it covers. */
  constructor(tables = SUMMED_TABLES.length) {
    this.#sumAt = TOTALS_AT + tables * 2;
    this.bytes = Buffer.alloc((this.#sumAt + 1) * 8);
    this.numbers = new Float64Array(this.bytes.buffer, this.bytes.byteOffset, this.#sumAt + 1);
    this.totals = this.numbers.subarray(TOTALS_AT, this.#sumAt);
    this.#summed = this.bytes.subarray(0, this.#sumAt * 8);
  }

  seal(): void {
    this.numbers[this.#sumAt] = crc32(this.#summed);
  }

  isWhole(): boolean {
    return this.numbers[MAGIC_AT] === MAGIC && this.numbers[this.#sumAt] === crc32(this.#summed);
  }
}

function newestSlot(path: string): Slot | null {
  if (!existsSync(path)) return null;
  const content = readFileSync(path);
  let newest: Slot | null = null;
  for (const at of [0, SECTOR])
    for (const tables of TABLE_COUNTS) {
      const slot = new Slot(tables);
      // The file may be truncated or empty.
      slot.bytes.set(content.subarray(at, at + slot.bytes.length));
      if (slot.isWhole() && (slot.numbers[SEQUENCE_AT] ?? 0) > (newest?.numbers[SEQUENCE_AT] ?? 0)) newest = slot;
    }
  return newest;
}

/** Reads every row of the journal: its totals, and what is damaged. */
export function verifyJournal(database: DatabaseSync): { totals: JournalTotals; damages: string[] } {
  const damages: string[] = [];
  const structure = database.prepare("PRAGMA integrity_check(1)").get()?.["integrity_check"];
  if (structure !== "ok") damages.push(String(structure));
  const totals = addUp(database, (what) => damages.push(what));
  return { totals, damages };
}

/** COUNTER-1, COUNTER-2: what the counter has recorded but the journal lacks; null if nothing. */
export function counterProblem(folder: string, counted: Counted, actual: Counted): EverstepError | null {
  if (counted.position > actual.position || counted.revision > actual.revision)
    return lostCommits(folder, { counted: place(counted), actual: place(actual) });
  // The process was killed, or power was lost, before its last transaction was counted.
  if (counted.position < actual.position || counted.revision < actual.revision) return null;
  const other = counted.totals.difference(actual.totals);
  return (
    other &&
    corrupt(folder, `${other.table} has ${other.rows} rows, ${other.expected} were written, or their contents differ`)
  );
}

const place = ({ position, revision }: Counted): string => `position ${position}, revision ${revision}`;

/** The totals of the current rows. `damaged` is called for damaged rows. */
function addUp(database: DatabaseSync, damaged: (what: string) => void): JournalTotals {
  const totals = new JournalTotals();
  // A folder that is about to be upgraded may lack some tables.
  for (const table of JOURNAL_TABLES.filter((name) => hasTable(database, `packed_${name}`)))
    for (const packed of each(database, `SELECT ${PACKED[table]} FROM packed_${table}`)) {
      if (!isWholeRow(table, packed)) damaged(`${nameOfRow(table, packed)} does not match its checksum or its key`);
      totals.add(table, packed[1] as number);
    }
  for (const [id, params, context, sum] of each(
    database,
    "SELECT session_id, params, context, sum FROM session_documents",
  )) {
    if (sumOfDocuments(String(id), String(params), context === null ? null : String(context)) !== sum)
      damaged(`the parameters or the context of session ${id} do not match their checksum`);
    totals.add("session_documents", sum as number);
  }
  for (const table of ["message_keys", "message_numbers", "archived"] as const)
    for (const values of each(database, `SELECT * FROM ${table}`)) totals.add(table, sumOfValues(...values));
  totals.keep();
  return totals;
}

const hasTable = (database: DatabaseSync, name: string): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;

function* each(database: DatabaseSync, sql: string): Generator<Values, undefined> {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  for (const row of statement.iterate()) yield row as unknown as Values;
}
