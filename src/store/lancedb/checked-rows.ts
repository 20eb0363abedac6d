import { crc32 } from "node:zlib";
import { columnIndex, GIVEN } from "./packed-rows.ts";
import { HISTORY, type HistoryName, splitKey, TABLES, type TableName, type Values } from "./tables.ts";

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
  const checksum = Number(read[columns.indexOf("checksum")]);
  const width = Math.floor(checksum / WIDTH) || FIRST_WIDTH[table];
  const text = row.slice(0, width);
  for (const name of GIVEN[table]) text[columnIndex(table, name)] = null;
  const isWhole = crc32(JSON.stringify(text)) === checksum % WIDTH;
  return isWhole && row.slice(width).every((value) => value === null) ? row : null;
}

const READ_COLUMNS = Object.fromEntries(
  (Object.keys(HISTORY) as HistoryName[]).map((name) => [name, readColumns(name)]),
) as Record<HistoryName, string[]>;
