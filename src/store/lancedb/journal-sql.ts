import type { DatabaseSync } from "node:sqlite";
import { LIVE_STATUSES } from "../../domain/session.ts";
import { GIVEN, NAMED } from "./packed-rows.ts";
import { type EmbeddedTables, HISTORY_NAMES, isHistory, SNAPSHOT_NAMES, TABLES, type TableName } from "./tables.ts";

/** What of a table is in LanceDB and on disk: its version, and the position up to which rows were moved. */
export type Archived = { version: number; pos: number };
export const RECORD_ARCHIVED = "INSERT OR REPLACE INTO archived (name, version, pos) VALUES (?, ?, ?)";
export function archivedTables(database: DatabaseSync): Map<TableName, Archived> {
  const rows = database.prepare("SELECT name, version, pos FROM archived").all();
  return new Map(
    rows.map(({ name, version, pos }) => [name as TableName, { version: Number(version), pos: Number(pos) }]),
  );
}

/** `open_actions` holds the actions that are not final, in the columns of `queue`. */
export type JournalTable = TableName | "open_actions";
export const JOURNAL_TABLES: readonly JournalTable[] = [...HISTORY_NAMES, ...SNAPSHOT_NAMES, "open_actions"];
export const schemaOf = (table: JournalTable): TableName => (table === "open_actions" ? "queue" : table);
const perTable = <Result>(make: (table: JournalTable) => Result): Record<JournalTable, Result> =>
  Object.fromEntries(JOURNAL_TABLES.map((table) => [table, make(table)])) as Record<JournalTable, Result>;

/** Rows of history are only ever inserted; of the others the newest version replaces the one before. */
/** The named values that are columns of their own. */
export const STORED_NAMES = perTable((table) => (isHistory(table) ? [] : NAMED[schemaOf(table)]));
const stored = (table: JournalTable): string[] => [...STORED_NAMES[table], ...GIVEN[schemaOf(table)], "row", "sum"];

const packedTable = (table: JournalTable): string => `packed_${table}`;

/** What `verified-rows.ts` takes: the text, its checksum, the given values, and the named ones where they are stored. */
export const PACKED = perTable((table) => ["row", "sum", ...GIVEN[schemaOf(table)], ...STORED_NAMES[table]].join(", "));

/** Takes the named values where the table stores them, then the given ones, then the text and its checksum. */
export const INSERT = perTable((table) => {
  const columns = stored(table);
  const insert = `INSERT INTO ${packedTable(table)} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
  if (isHistory(table)) return insert;
  const [key, ...others] = columns;
  return `${insert} ON CONFLICT (${key}) DO UPDATE SET ${others.map((name) => `${name} = excluded.${name}`).join(", ")}`;
});
/** A session that goes on: what is indexed is left alone, so that a step does not rewrite the indexes. */
export const UPDATE_SESSION = "UPDATE packed_agent_state SET pos = ?, row = ?, sum = ? WHERE session_id = ?";
export const CLOSE_ACTION = "DELETE FROM packed_open_actions WHERE action_id = ?";
export const UPDATE_STATUS = "UPDATE packed_agent_state SET status = ? WHERE session_id = ?";

/** Rows of a stretch of positions, but for some. */
export const DELETE = perTable(
  (table) =>
    `DELETE FROM ${packedTable(table)} WHERE pos > ? AND pos <= ? AND pos NOT IN (SELECT value FROM json_each(?))`,
);

/** The checksum of the row of a key. */
export const SUM_OF = perTable(
  (table) => `SELECT sum FROM ${packedTable(table)} WHERE ${NAMED[schemaOf(table)][0]} = ?`,
);

const SQLITE_TYPES = { text: "TEXT", integer: "INTEGER", real: "REAL", flag: "INTEGER", json: "TEXT" } as const;

/** What is on disk. */
export const CREATE_TABLES = JOURNAL_TABLES.map((table) => {
  const columns = stored(table);
  const key = isHistory(table) ? "pos" : columns[0];
  const definitions = TABLES[schemaOf(table)]
    .filter(({ name }) => columns.includes(name))
    .map(({ name, kind }) => `${name} ${SQLITE_TYPES[kind]}${name === key ? " PRIMARY KEY" : ""}`);
  return `CREATE TABLE IF NOT EXISTS ${packedTable(table)} (${definitions.join(", ")}, row TEXT NOT NULL, sum INTEGER)`;
});

/** How often anything but a commit changed rows (`commit-counter.ts`, COUNTER-1). */
export const CREATE_REVISION = [
  "CREATE TABLE IF NOT EXISTS journal_revision (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL)",
  "INSERT OR IGNORE INTO journal_revision (id, revision) VALUES (1, 0)",
];

/** What is read: a view by the table's name in which every column can be asked for. (A generated column would be computed with every insert.) */
export const createViews = (tables: EmbeddedTables): string[] =>
  JOURNAL_TABLES.map((table) => {
    const columns = stored(table);
    const others = tables.columns[schemaOf(table)]
      .map(({ name }, index) => ({ name, index }))
      .filter(({ name }) => !columns.includes(name))
      .map(({ name, index }) => `row ->> ${index} AS ${name}`);
    return `CREATE TEMP VIEW ${table} AS SELECT ${[...columns, ...others].join(", ")}, rowid AS arrival FROM ${packedTable(table)}`;
  });

export const LIVE = LIVE_STATUSES.map((status) => `'${status}'`).join(", ");

/** Steps of live sessions since their last whole state: the sessions' contexts are rebuilt from them. */
export const NEEDED_FOR_CONTEXT = `SELECT step.pos FROM agent_steps AS step JOIN agent_state AS session USING (session_id)
  WHERE step.pos > ? AND step.pos <= ? AND session.status IN (${LIVE}) AND step.iteration >= session.base_iteration`;

/** The steps at these positions, newest first. */
export const STEPS_AT = `SELECT ${PACKED.agent_steps} FROM agent_steps WHERE pos IN (SELECT value FROM json_each(?)) ORDER BY pos DESC`;

/** How far a conversation was numbered when its messages left the journal, or by the one at a position. */
export const LAST_NUMBER = "SELECT last FROM message_numbers WHERE conversation_id = ?";
export const NUMBER_AT = "SELECT number FROM packed_conversation_messages WHERE pos = ?";
export const KEEP_NUMBER = `INSERT INTO message_numbers (conversation_id, last) VALUES (?, ?)
  ON CONFLICT (conversation_id) DO UPDATE SET last = excluded.last`;

/** A message keeps its id for good. While it is here its row tells; when it leaves, this does. */
export const KEEP_KEYS = "INSERT OR IGNORE INTO message_keys (message_id) SELECT value FROM json_each(?)";
