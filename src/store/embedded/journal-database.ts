import { closeSync, openSync } from "node:fs";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { parseDefensively } from "../../domain/json.ts";
import { LIVE_STATUSES, type Session } from "../../domain/session.ts";
import { beginningOf, needsPerson, searchedText } from "../../domain/session-summary.ts";
import { copyOpenFile } from "../../files/durable-copy.ts";
import { BOOKKEEPING_TABLES } from "../schema.ts";
import { journalPath, toStoreError } from "./folder-errors.ts";
import {
  ASSIGNED,
  type EmbeddedTables,
  fromText,
  HISTORY_NAMES,
  INDEXED,
  isHistory,
  SNAPSHOT_NAMES,
  TABLES,
  type TableName,
  type Value,
  type Values,
} from "./tables.ts";

/** SQLite checkpoints its log into the main file after this many pages. */
export const CHECKPOINT_PAGES = 4000;

/** Called after each transaction: committed to disk, or rolled back. */
type TransactionOutcome = { onCommitted: () => void; onRolledBack: () => void };

/** SQLite as the journal uses it: prepared statements are cached, rows are arrays, errors are coded. */
export class JournalDatabase {
  readonly #database: DatabaseSync;
  readonly #folder: string;
  readonly #outcome: TransactionOutcome;
  readonly #statements = new Map<string, StatementSync>();
  /** STAGED-3. */
  #copied: number | undefined;

  constructor(folder: string, database: DatabaseSync, outcome: TransactionOutcome) {
    this.#folder = folder;
    this.#outcome = outcome;
    this.#database = database;
    this.#database.function("searched_text", { deterministic: true }, (session_id, agent_id, moniker, result) =>
      searchedText({
        session_id: String(session_id),
        agent_id: String(agent_id),
        moniker: fromText(String(moniker)),
        text: beginningOf(parseDefensively(result as string | null)),
      }),
    );
    this.#database.function(
      "needs_person",
      { deterministic: true },
      (status, stop_reason, question, pause_reason): number =>
        Number(
          needsPerson({
            status: status as Session["status"],
            stop_reason: stop_reason as Session["stop_reason"],
            question: parseDefensively(question as string | null) as Session["question"],
            pause_reason: parseDefensively(pause_reason as string | null) as Session["pause_reason"],
          }),
        ),
    );
  }

  /** Durable when it returns. */
  transaction<Result>(work: () => Result): Result {
    return this.#guard(() => {
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        this.#database.exec("COMMIT");
        this.#outcome.onCommitted();
        return result;
      } catch (error) {
        // A full disk may already have rolled back.
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        this.#outcome.onRolledBack();
        throw error;
      }
    });
  }

  /** Durable with the next durable transaction: for changes that can be repeated after a crash. */
  lazyTransaction<Result>(work: () => Result): Result {
    this.#database.exec("PRAGMA synchronous = NORMAL");
    try {
      return this.transaction(work);
    } finally {
      this.#database.exec("PRAGMA synchronous = FULL");
    }
  }

  run(sql: string, ...values: Value[]) {
    // Without `#guard`: a commit calls this several times.
    try {
      return this.#statement(sql).run(...values);
    } catch (error) {
      throw toStoreError(error, this.#folder);
    }
  }

  rows(sql: string, ...values: Value[]): Values[] {
    return this.#guard(() => this.#statement(sql).all(...values) as unknown as Values[]);
  }

  /** One row at a time, for large tables. */
  *each(sql: string, ...values: Value[]): Generator<Values> {
    try {
      for (const row of this.#statement(sql).iterate(...values)) yield row as unknown as Values;
    } catch (error) {
      throw toStoreError(error, this.#folder);
    }
  }

  archived(): Map<TableName, Archived> {
    return this.#guard(() => archivedTables(this.#database));
  }

  value(sql: string, ...values: Value[]): Value | undefined {
    return this.#guard(() => (this.#statement(sql).get(...values) as unknown as Values | undefined)?.[0]);
  }

  /** Log pages after which SQLite checkpoints; 0: never. */
  checkpointAfter(pages: number): void {
    this.#guard(() => this.#database.exec(`PRAGMA wal_autocheckpoint = ${pages}`));
  }

  /** Returns the space of removed rows to the file system, at most this many pages. */
  shrink(pages: number): void {
    this.#guard(() => this.#database.exec(`PRAGMA incremental_vacuum(${pages})`));
  }

  /** Copies SQLite's main file. */
  async copyTo(path: string): Promise<void> {
    this.#copied ??= openSync(journalPath(this.#folder), "r");
    await copyOpenFile(this.#copied, path);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
    if (this.#copied !== undefined) closeSync(this.#copied);
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays(true);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #guard<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw toStoreError(error, this.#folder);
    }
  }
}

/** What is archived of a table: its LanceDB version, and the position up to which rows were moved. */
export type Archived = { version: number; pos: number };
export const RECORD_ARCHIVED = "INSERT OR REPLACE INTO archived (name, version, pos) VALUES (?, ?, ?)";
export function archivedTables(database: DatabaseSync): Map<TableName, Archived> {
  const rows = database.prepare("SELECT name, version, pos FROM archived").all();
  return new Map(
    rows.map(({ name, version, pos }) => [name as TableName, { version: Number(version), pos: Number(pos) }]),
  );
}

/** `open_actions` has the actions that are not final, with the columns of `queue`. */
export type JournalTable = TableName | "open_actions";
export const JOURNAL_TABLES: readonly JournalTable[] = [
  ...HISTORY_NAMES,
  ...SNAPSHOT_NAMES,
  "open_actions",
  ...BOOKKEEPING_TABLES,
];
export const schemaOf = (table: JournalTable): TableName => (table === "open_actions" ? "queue" : table);
const perTable = <Result>(make: (table: JournalTable) => Result): Record<JournalTable, Result> =>
  Object.fromEntries(JOURNAL_TABLES.map((table) => [table, make(table)])) as Record<JournalTable, Result>;

/** History rows are only inserted; in other tables the newest version replaces the previous one. */
/** The indexed values that are columns. */
export const INDEXED_COLUMNS = perTable((table) => (isHistory(table) ? [] : INDEXED[schemaOf(table)]));
const stored = (table: JournalTable): string[] => [
  ...INDEXED_COLUMNS[table],
  ...ASSIGNED[schemaOf(table)],
  "row",
  "sum",
];

const packedTable = (table: JournalTable): string => `packed_${table}`;

/** What `row-checksums.ts` needs: the text, its checksum, the assigned values, and the indexed ones if stored. */
export const PACKED = perTable((table) =>
  ["row", "sum", ...ASSIGNED[schemaOf(table)], ...INDEXED_COLUMNS[table]].join(", "),
);

/** Parameters: the indexed values if stored, the assigned ones, the text and its checksum. */
export const INSERT = perTable((table) => {
  const columns = stored(table);
  const insert = `INSERT INTO ${packedTable(table)} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
  if (isHistory(table)) return insert;
  const [key, ...others] = columns;
  return `${insert} ON CONFLICT (${key}) DO UPDATE SET ${others.map((name) => `${name} = excluded.${name}`).join(", ")}`;
});
/** Leaves the indexed columns of an existing session alone, so that a step does not rewrite the indexes. */
export const UPDATE_SESSION = "UPDATE packed_agent_state SET pos = ?, row = ?, sum = ? WHERE session_id = ?";
export const UPDATE_STATUS = "UPDATE packed_agent_state SET status = ? WHERE session_id = ?";

/** Rows of a range of positions, with exceptions. */
export const DELETE = perTable(
  (table) =>
    `DELETE FROM ${packedTable(table)} WHERE pos > ? AND pos <= ? AND pos NOT IN (SELECT value FROM json_each(?))`,
);

/** The checksum of a key's row. */
export const SUM_OF = perTable(
  (table) => `SELECT sum FROM ${packedTable(table)} WHERE ${INDEXED[schemaOf(table)][0]} = ?`,
);

/** Removes by key. */
export const REMOVE = perTable((table) => `DELETE FROM ${packedTable(table)} WHERE ${INDEXED[schemaOf(table)][0]} = ?`);

const SQLITE_TYPES = { text: "TEXT", integer: "INTEGER", real: "REAL", flag: "INTEGER", json: "TEXT" } as const;

/** The tables on disk. */
export const CREATE_TABLES = JOURNAL_TABLES.map((table) => {
  const columns = stored(table);
  const key = isHistory(table) ? "pos" : columns[0];
  const definitions = TABLES[schemaOf(table)]
    .filter(({ name }) => columns.includes(name))
    .map(({ name, kind }) => `${name} ${SQLITE_TYPES[kind]}${name === key ? " PRIMARY KEY" : ""}`);
  return `CREATE TABLE IF NOT EXISTS ${packedTable(table)} (${definitions.join(", ")}, row TEXT NOT NULL, sum INTEGER)`;
});

/** The number of transactions other than commits (`commit-counter.ts`, COUNTER-1). */
export const CREATE_REVISION = [
  "CREATE TABLE IF NOT EXISTS journal_revision (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL)",
  "INSERT OR IGNORE INTO journal_revision (id, revision) VALUES (1, 0)",
];

/** For reads: a view per table in which every column can be selected. (A generated column would be computed on every insert.) */
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

/** The live ones among these sessions, with the iteration of their last full state. */
export const LIVE_BASES = `SELECT session_id, base_iteration FROM agent_state
  WHERE session_id IN (SELECT value FROM json_each(?)) AND status IN (${LIVE}) AND base_iteration IS NOT NULL`;
export const ITERATION_AT = "SELECT iteration FROM agent_steps WHERE pos = ?";

/** The step at a position. */
export const STEP_AT = `SELECT ${PACKED.agent_steps} FROM agent_steps WHERE pos = ?`;

/** The steps at these positions, newest first. */
export const STEPS_AT = `SELECT ${PACKED.agent_steps} FROM agent_steps WHERE pos IN (SELECT value FROM json_each(?)) ORDER BY pos DESC`;

/** A conversation's last number among its trimmed messages, or the number at a position. */
export const LAST_NUMBER = "SELECT last FROM message_numbers WHERE conversation_id = ?";
export const NUMBER_AT = "SELECT number FROM packed_conversation_messages WHERE pos = ?";
export const KEEP_NUMBER = `INSERT INTO message_numbers (conversation_id, last) VALUES (?, ?)
  ON CONFLICT (conversation_id) DO UPDATE SET last = excluded.last`;

/** A message's id is never reused. While the message is in the journal its row proves that; afterwards this table does. */
export const KEEP_KEYS = "INSERT OR IGNORE INTO message_keys (message_id) SELECT value FROM json_each(?)";
