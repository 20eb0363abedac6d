import { fromText } from "./exact-text.ts";
import { type JournalTable, STORED_NAMES, schemaOf } from "./journal-sql.ts";
import { GIVEN, unpack } from "./packed-rows.ts";
import { placedSum, sumOfText } from "./row-sums.ts";
import { columnIndex, EMBEDDED_TABLES, type EmbeddedTables, type TableName, type Values } from "./tables.ts";

/** `text_sum` is the checksum of the row's text, `width` the number of values in it. */
export type VerifiedRow = { values: Values; width: number; text_sum: number };

/** A row as `PACKED` selects it: null where it is not what was written, or is filed under another name. */
export function verifiedRow(tables: EmbeddedTables, table: JournalTable, packed: Values): VerifiedRow | null {
  const text_sum = verifiedSum(packed, GIVEN[schemaOf(table)].length);
  if (text_sum === null) return null;
  const row = unpack(tables, schemaOf(table), packed[0] as string, packed.slice(GIVEN_AT));
  return isWellNamed(table, packed, row.values) ? { ...row, text_sum } : null;
}

/** Whether a row is what was written. The text of a row of history has to be read for nothing else. */
export function isWholeRow(table: JournalTable, packed: Values): boolean {
  if (STORED_NAMES[table].length > 0) return verifiedRow(EMBEDDED_TABLES, table, packed) !== null;
  return verifiedSum(packed, GIVEN[schemaOf(table)].length) !== null;
}

/** Which row it is, in words, as far as it can still be read. */
export function nameOfRow(table: JournalTable, packed: Values): string {
  const names = STORED_NAMES[table]
    .slice(0, 1)
    .map((name, at) => [name, packed[GIVEN_AT + GIVEN[schemaOf(table)].length + at]]);
  const owners = names.length > 0 ? names : ownersIn(schemaOf(table), packed[0]);
  const owner = owners.map(([name, value]) => `${name} ${String(value)}`).join(", ");
  return `the row of ${table} at position ${String(packed[GIVEN_AT])}${owner && ` (${owner})`}`;
}

const GIVEN_AT = 2;

function verifiedSum(packed: Values, given: number): number | null {
  const [row, sum] = packed;
  if (typeof row !== "string") return null;
  const text_sum = sumOfText(row);
  const number = given > 1 ? packed[GIVEN_AT + 1] : 0;
  return placedSum(text_sum, packed[GIVEN_AT] as number, number as number) === sum ? text_sum : null;
}

function isWellNamed(table: JournalTable, packed: Values, values: Values): boolean {
  const from = GIVEN_AT + GIVEN[schemaOf(table)].length;
  return STORED_NAMES[table].every((name, at) => {
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
