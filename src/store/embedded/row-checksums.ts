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
  type Values,
} from "./tables.ts";

/**
 * SQLite does not notice a byte that a bad disk or a bad copy changed, so every row of the journal has a checksum: of its text
 * and of the numbers that the journal gave it. The text's own is the one that goes with the row into LanceDB, so that moving a
 * row computes it once. All are signed, which SQLite stores in four bytes.
 */
const sumOfText = (row: string): number => crc32(row);

export const sumOfRow = (row: string, pos: number, number: number): number => placedSum(crc32(row), pos, number);

/** From the text's checksum. An odd factor lets no changed bit cancel out; positions may be beyond 32 bits. */
const placedSum = (text: number, pos: number, number: number): number =>
  (text + Math.imul(pos, 0x9e3779b1) + Math.floor(pos / 2 ** 32) + Math.imul(number, 0x85ebca6b)) | 0;

export const sumOfDocuments = (session_id: string, params: string, context: string | null): number =>
  crc32(context ?? "\u0000", crc32(params, crc32(session_id))) | 0;

/** Of a row that is only its key, or a few values: it is not stored, only added up. */
export const sumOfValues = (...values: readonly (string | number | null)[]): number => crc32(values.join("\u0000")) | 0;

/** `text_sum` is the checksum of the row's text, `width` the number of values in it. */
export type VerifiedRow = { values: Values; width: number; text_sum: number };

/** A row as `PACKED` selects it: null where it is not what was written, or is filed under another name. */
export function verifiedRow(tables: EmbeddedTables, table: JournalTable, packed: Values): VerifiedRow | null {
  const text_sum = verifiedSum(packed, ASSIGNED[schemaOf(table)].length);
  if (text_sum === null) return null;
  const row = unpack(tables, schemaOf(table), packed[0] as string, packed.slice(ASSIGNED_AT));
  return isWellNamed(table, packed, row.values) ? { ...row, text_sum } : null;
}

/** Whether a row is what was written. The text of a row of history has to be read for nothing else. */
export function isWholeRow(table: JournalTable, packed: Values): boolean {
  if (INDEXED_COLUMNS[table].length > 0) return verifiedRow(EMBEDDED_TABLES, table, packed) !== null;
  return verifiedSum(packed, ASSIGNED[schemaOf(table)].length) !== null;
}

/** Which row it is, in words, as far as it can still be read. */
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

function isWellNamed(table: JournalTable, packed: Values, values: Values): boolean {
  const from = ASSIGNED_AT + ASSIGNED[schemaOf(table)].length;
  return INDEXED_COLUMNS[table].every((name, at) => {
    const value = values[columnIndex(schemaOf(table), name)];
    // A name is a column as SQLite takes a text, and in the row to the letter.
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
 * LanceDB does not notice a byte that a bad disk or a bad copy changed, so a row of history carries the checksum of its
 * text in the journal, and is put together and compared when it is read. Above the 32 bits of the checksum stands how many
 * columns the text had: a table may have got more since.
 */
export const checksumOf = (text_sum: number, width: number): number => text_sum + width * WIDTH;
const WIDTH = 2 ** 32;
/** What the tables had when rows did not carry it. */
const FIRST_WIDTH: Readonly<Record<HistoryName, number>> = { agent_steps: 20, conversation_messages: 18, queue: 17 };

/** Rows of these tables have a sort key, which tells these two columns: each column less makes a page faster. */
const COLUMNS_IN_KEY: Partial<Record<HistoryName, [id: string, number: string]>> = {
  agent_steps: ["session_id", "iteration"],
  conversation_messages: ["conversation_id", "number"],
};

/** How a row of history is read from LanceDB and compared with its checksum. */
export class CheckedRows {
  /** The columns that a whole row is put together from. */
  readonly columns: readonly string[];
  readonly #table: HistoryName;
  /** Where each column read belongs in the row; -1 for what is none of its own. */
  readonly #places: readonly number[];
  readonly #keyPlaces: readonly [id: number, number: number] | null;
  readonly #assignedPlaces: readonly number[];

  constructor(tables: EmbeddedTables, table: HistoryName) {
    const names = tables.columns[table].map(({ name }) => name);
    const columnsInKey = COLUMNS_IN_KEY[table];
    this.#table = table;
    this.columns = [
      ...names.filter((name) => !columnsInKey?.includes(name)),
      "checksum",
      ...(columnsInKey ? ["sort_key"] : []),
    ];
    this.#places = this.columns.map((name) => names.indexOf(name));
    this.#keyPlaces = columnsInKey ? [names.indexOf(columnsInKey[0]), names.indexOf(columnsInKey[1])] : null;
    this.#assignedPlaces = ASSIGNED[table].map((name) => names.indexOf(name));
  }

  /** Puts a row together from the columns; null where it is not what was written. */
  check(read: Values): Values | null {
    const row: Values = [];
    for (const [at, place] of this.#places.entries()) if (place >= 0) row[place] = read[at] ?? null;
    if (this.#keyPlaces) {
      const [id, number] = splitKey(read[this.columns.indexOf("sort_key")] as string);
      row[this.#keyPlaces[0]] = id ?? null;
      row[this.#keyPlaces[1]] = Number(number);
    }
    const checksum = Number(read[this.columns.indexOf("checksum")]);
    const width = Math.floor(checksum / WIDTH) || FIRST_WIDTH[this.#table];
    const text = row.slice(0, width);
    for (const place of this.#assignedPlaces) text[place] = null;
    const isWhole = crc32(JSON.stringify(text)) === checksum % WIDTH;
    return isWhole && row.slice(width).every((value) => value === null) ? row : null;
  }
}
