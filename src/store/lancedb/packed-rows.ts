import { columnIndex, type EmbeddedTables, type TableName, type Value, type Values } from "./tables.ts";

/**
 * A row on its way to the journal and in it: its values as one JSON text, which crosses the threads and enters SQLite
 * several times faster than as many values, and beside it the ones that the journal itself goes by.
 */
export type PackedRow = { row: string; named: string[] };

/** The values that the journal goes by. The first one is the key where the table has one. */
export const NAMED: Readonly<Record<TableName, readonly string[]>> = {
  agent_steps: ["session_id"],
  conversation_messages: ["message_id", "conversation_id"],
  queue: ["action_id"],
  agent_state: ["session_id", "agent_id", "status", "created_at"],
  agent_config: ["agent_id"],
  conversations: ["conversation_id", "created_at"],
  conversation_participants: ["participant_id", "conversation_id"],
  session_cursors: ["cursor_key"],
};

/** The values that the journal gives to a row: they are columns of their own, not part of the text. */
export const GIVEN: Readonly<Record<TableName, readonly string[]>> = {
  agent_steps: ["pos"],
  conversation_messages: ["pos", "number"],
  queue: ["pos"],
  agent_state: ["pos"],
  agent_config: ["pos"],
  conversations: ["pos"],
  conversation_participants: ["pos"],
  session_cursors: ["pos"],
};

const GIVEN_INDEXES = Object.fromEntries(
  Object.entries(GIVEN).map(([table, columns]) => [
    table,
    columns.map((name) => columnIndex(table as TableName, name)),
  ]),
) as Record<TableName, number[]>;

export const pack = (tables: EmbeddedTables, table: TableName, row: Record<string, unknown>): PackedRow => ({
  row: JSON.stringify(tables.toValues(table, row)),
  named: NAMED[table].map((name) => row[name] as string),
});

/** The text and the given values become the row's values; `width` is how many the text has. */
export function unpack(
  tables: EmbeddedTables,
  table: TableName,
  row: string,
  given: readonly Value[],
): { values: Values; width: number } {
  const values = JSON.parse(row) as Values;
  const width = values.length;
  // A row that was stored before its table had these columns.
  for (let index = width; index < tables.columns[table].length; index += 1) values.push(null);
  for (const [at, index] of GIVEN_INDEXES[table].entries()) values[index] = given[at] ?? null;
  return { values, width };
}
