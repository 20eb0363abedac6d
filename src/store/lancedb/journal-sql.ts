import { LIVE_STATUSES } from "../../domain/session.ts";
import { HISTORY, HISTORY_NAMES, SNAPSHOT_NAMES, TABLES, type TableName } from "./tables.ts";

/** `open_actions` holds the actions that are not final, in the columns of `queue`. */
export type JournalTable = TableName | "open_actions";
const JOURNAL_TABLES: JournalTable[] = [...HISTORY_NAMES, ...SNAPSHOT_NAMES, "open_actions"];
const schemaOf = (table: JournalTable): TableName => (table === "open_actions" ? "queue" : table);
const namesOf = (table: JournalTable): string[] => TABLES[schemaOf(table)].map(({ name }) => name);
const perTable = <Result>(make: (table: JournalTable) => Result): Record<JournalTable, Result> =>
  Object.fromEntries(JOURNAL_TABLES.map((table) => [table, make(table)])) as Record<JournalTable, Result>;

const indexOf = (table: JournalTable, column: string): number => namesOf(table).indexOf(column);
export const POSITION = perTable((table) => indexOf(table, "pos"));
export const COLUMNS = perTable((table) => namesOf(table).join(", "));
/** Rows of history are only ever inserted; of the others the newest version replaces the one before. */
export const INSERT = perTable((table) => {
  const names = namesOf(table);
  const insert = `INSERT INTO ${table} (${COLUMNS[table]}) VALUES (${names.map(() => "?").join(", ")})`;
  if (table in HISTORY) return insert;
  const key = table === "open_actions" ? "action_id" : names[0];
  return `${insert} ON CONFLICT (${key}) DO UPDATE SET ${names.map((name) => `${name} = excluded.${name}`).join(", ")}`;
});
export const MESSAGE = {
  message_id: indexOf("conversation_messages", "message_id"),
  conversation_id: indexOf("conversation_messages", "conversation_id"),
  number: indexOf("conversation_messages", "number"),
};
export const ACTION_ID = indexOf("queue", "action_id");

export const LIVE = LIVE_STATUSES.map((status) => `'${status}'`).join(", ");

/** A step of a live session since its last whole state: the session's context is rebuilt from it. */
export const NEEDED_FOR_CONTEXT = `SELECT 1 FROM agent_state AS s WHERE s.session_id = agent_steps.session_id
  AND s.status IN (${LIVE}) AND agent_steps.iteration >= s.base_iteration`;

/** Before messages leave the journal, how far their conversations were numbered. */
export const KEEP_NUMBERS = `INSERT INTO message_numbers (conversation_id, last)
  SELECT conversation_id, max(number) FROM conversation_messages WHERE pos > ? AND pos <= ? GROUP BY conversation_id
  ON CONFLICT (conversation_id) DO UPDATE SET last = max(last, excluded.last)`;
