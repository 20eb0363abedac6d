import { crc32 } from "node:zlib";
import { columnIndex, GIVEN } from "./packed-rows.ts";
import { HISTORY, type HistoryName, splitKey, TABLES, type TableName, type Values } from "./tables.ts";

/**
 * LanceDB does not notice a byte that a bad disk or a bad copy changed, so a row of history carries the checksum of its
 * text in the journal, and is put together and compared when it is read.
 */
export const checksumOf = (row: string): number => crc32(row);

/** Rows of these tables have a sort key, which tells these two columns: each column less makes a page faster. */
const TOLD_BY_KEY: Partial<Record<TableName, [id: string, number: string]>> = {
  agent_steps: ["session_id", "iteration"],
  conversation_messages: ["conversation_id", "number"],
};

/** The columns that a whole row is put together from. */
export const readColumns = (table: TableName): string[] => {
  const told: string[] = TOLD_BY_KEY[table] ?? [];
  const own = TABLES[table].map(({ name }) => name).filter((name) => !told.includes(name));
  return [...own, ...(table in HISTORY ? ["checksum"] : []), ...(told.length > 0 ? ["sort_key"] : [])];
};

/** Puts a row together from the columns above; null where it is not what was written. */
export function checkedRow(table: HistoryName, read: Values): Values | null {
  const columns = READ_COLUMNS[table];
  const row: Values = [];
  for (const [at, name] of columns.entries()) {
    const index = columnIndex(table, name);
    if (index >= 0) row[index] = read[at] ?? null;
  }
  const told = TOLD_BY_KEY[table];
  if (told) {
    const [id, number] = splitKey(read[columns.indexOf("sort_key")] as string);
    row[columnIndex(table, told[0])] = id ?? null;
    row[columnIndex(table, told[1])] = Number(number);
  }
  const text = [...row];
  for (const name of GIVEN[table]) text[columnIndex(table, name)] = null;
  return checksumOf(JSON.stringify(text)) === read[columns.indexOf("checksum")] ? row : null;
}

const READ_COLUMNS = Object.fromEntries(
  (Object.keys(HISTORY) as HistoryName[]).map((name) => [name, readColumns(name)]),
) as Record<HistoryName, string[]>;
