import { crc32 } from "node:zlib";
import { INDEXED_COLUMNS, type JournalTable, schemaOf } from "./journal-database.ts";
import {
  ASSIGNED,
  columnIndex,
  EMBEDDED_TABLES,
  type EmbeddedTables,
  fromText,
  type HistoryName,
  splitKey,
  type TableName,
  unpack,
  type Value,
  type Values,
} from "./tables.ts";

/**
 * SQLite does not detect a byte changed by a bad disk or copy, so every journal row has a checksum: of its text and of the
 * numbers the journal assigned. The text's own checksum goes with the row into LanceDB, so archiving does not compute it again.
 * All are signed, which SQLite stores in four bytes.
 */
const sumOfText = (row: string): number => crc32(row);

export const sumOfRow = (row: string, pos: number, number: number): number => placedSum(crc32(row), pos, number);

/** Adds position and number to the text's checksum. With odd factors no changed bit cancels out; positions may exceed 32 bits. */
const placedSum = (text: number, pos: number, number: number): number =>
  (text + Math.imul(pos, 0x9e3779b1) + Math.floor(pos / 2 ** 32) + Math.imul(number, 0x85ebca6b)) | 0;

export const sumOfDocuments = (session_id: string, params: string, context: string | null): number =>
  crc32(context ?? "\u0000", crc32(params, crc32(session_id))) | 0;

/** For a row that is only its key or a few values: not stored, only summed. */
export const sumOfValues = (...values: readonly (string | number | null)[]): number => crc32(values.join("\u0000")) | 0;

/** `text_sum` is the checksum of the row's text, `width` its number of values. */
export type VerifiedRow = { values: Values; width: number; text_sum: number };

/** A row as `PACKED` selects it; null if it is damaged or stored under another key. */
export function verifiedRow(tables: EmbeddedTables, table: JournalTable, packed: Values): VerifiedRow | null {
  const text_sum = verifiedSum(packed, ASSIGNED[schemaOf(table)].length);
  if (text_sum === null) return null;
  const row = unpack(tables, schemaOf(table), packed[0] as string, packed.slice(ASSIGNED_AT));
  return hasRightKey(table, packed, row.values) ? { ...row, text_sum } : null;
}

/** Whether a row is undamaged. A history row's text need not be parsed for that. */
export function isWholeRow(table: JournalTable, packed: Values): boolean {
  if (INDEXED_COLUMNS[table].length > 0) return verifiedRow(EMBEDDED_TABLES, table, packed) !== null;
  return verifiedSum(packed, ASSIGNED[schemaOf(table)].length) !== null;
}

/** Describes a row in words, as far as it is readable. */
export function nameOfRow(table: JournalTable, packed: Values): string {
  const names = INDEXED_COLUMNS[table]
    .slice(0, 1)
    .map((name, at) => [name, packed[ASSIGNED_AT + ASSIGNED[schemaOf(table)].length + at]]);
  const owners = names.length > 0 ? names : ownersIn(schemaOf(table), packed[0]);
  const owner = owners.map(([name, value]) => `${name} ${String(value)}`).join(", ");
  return `the row of ${table} at position ${String(packed[ASSIGNED_AT])}${owner && ` (${owner})`}`;
}

const ASSIGNED_AT = 2;

function verifiedSum(packed: Values, assigned: number): number | null {
  const [row, sum] = packed;
  if (typeof row !== "string") return null;
  const text_sum = sumOfText(row);
  const number = assigned > 1 ? packed[ASSIGNED_AT + 1] : 0;
  return placedSum(text_sum, packed[ASSIGNED_AT] as number, number as number) === sum ? text_sum : null;
}

function hasRightKey(table: JournalTable, packed: Values, values: Values): boolean {
  const from = ASSIGNED_AT + ASSIGNED[schemaOf(table)].length;
  return INDEXED_COLUMNS[table].every((name, at) => {
    const value = values[columnIndex(schemaOf(table), name)];
    // The column has SQLite's form of the text, the row the exact one.
    return (typeof value === "string" ? fromText(value).toWellFormed() : value) === packed[from + at];
  });
}

function ownersIn(table: TableName, row: unknown): [name: string, value: unknown][] {
  try {
    const values = JSON.parse(String(row)) as Values;
    return (["session_id", "conversation_id", "action_id"] as const)
      .map((name): [string, unknown] => [name, values[columnIndex(table, name)]])
      .filter(([, value]) => typeof value === "string");
  } catch {
    return [];
  }
}

/**
 * LanceDB does not detect a byte changed by a bad disk or copy, so a history row carries the checksum of its text in the
 * journal; a reader rebuilds that text and compares. Above the checksum's 32 bits stands the text's number of columns: a table
 * may have more by now.
 */
export const checksumOf = (text_sum: number, width: number): number => text_sum + width * WIDTH;
const WIDTH = 2 ** 32;
/** The tables' widths before rows carried theirs. */
const FIRST_WIDTH: Readonly<Record<HistoryName, number>> = { agent_steps: 20, conversation_messages: 18, queue: 17 };

/** A row of history with its checksum at the end, as LanceDB is given it. It may end before its table does. */
export function checkedValues(tables: EmbeddedTables, table: HistoryName, stored: Values): Values {
  const text = [...stored];
  for (const name of ASSIGNED[table]) text[columnIndex(table, name)] = null;
  while (text.length > 0 && text.at(-1) === null) text.pop();
  const values = [...stored];
  while (values.length < tables.columns[table].length) values.push(null);
  return [...values, checksumOf(sumOfText(JSON.stringify(text)), text.length)];
}

/** Rows of these tables have a sort key, which contains these two columns: each column less makes a page faster. */
const COLUMNS_IN_KEY: Partial<Record<HistoryName, [id: string, number: string]>> = {
  agent_steps: ["session_id", "iteration"],
  conversation_messages: ["conversation_id", "number"],
};

/** Reads history rows from LanceDB and verifies their checksums. */
export class CheckedRows {
  /** The columns a row is rebuilt from. */
  readonly columns: readonly string[];
  readonly #table: HistoryName;
  /** Each column's place in the row; -1 if it is not part of it. */
  readonly #places: readonly number[];
  readonly #keyPlaces: readonly [id: number, number: number] | null;
  readonly #assignedPlaces: readonly number[];
  /** A row of nulls. */
  readonly #empty: Readonly<Values>;
  readonly #checksumAt: number;
  readonly #keyAt: number;

  constructor(tables: EmbeddedTables, table: HistoryName, hasKey = true) {
    const names = tables.columns[table].map(({ name }) => name);
    const columnsInKey = hasKey ? COLUMNS_IN_KEY[table] : undefined;
    this.#table = table;
    this.columns = [
      ...names.filter((name) => !columnsInKey?.includes(name)),
      "checksum",
      ...(columnsInKey ? ["sort_key"] : []),
    ];
    this.#places = this.columns.map((name) => names.indexOf(name));
    this.#keyPlaces = columnsInKey ? [names.indexOf(columnsInKey[0]), names.indexOf(columnsInKey[1])] : null;
    this.#assignedPlaces = ASSIGNED[table].map((name) => names.indexOf(name));
    this.#empty = names.map(() => null);
    this.#checksumAt = this.columns.indexOf("checksum");
    this.#keyAt = this.columns.indexOf("sort_key");
  }

  /** Rebuilds a row from its columns; null if it is damaged. */
  check(read: Values): Values | null {
    const row = [...this.#empty];
    for (let at = 0; at < read.length; at += 1) {
      const place = this.#places[at] as number;
      if (place >= 0) row[place] = read[at] as Value;
    }
    if (this.#keyPlaces) {
      const [id, number] = splitKey(read[this.#keyAt] as string);
      row[this.#keyPlaces[0]] = id ?? null;
      row[this.#keyPlaces[1]] = Number(number);
    }
    const checksum = Number(read[this.#checksumAt]);
    const width = Math.floor(checksum / WIDTH) || FIRST_WIDTH[this.#table];
    const text = row.slice(0, width);
    for (const place of this.#assignedPlaces) text[place] = null;
    const isWhole = crc32(JSON.stringify(text)) === checksum % WIDTH;
    for (let at = width; at < row.length; at += 1) if (row[at] !== null) return null;
    return isWhole ? row : null;
  }
}
