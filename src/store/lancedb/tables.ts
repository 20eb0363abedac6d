import { parseDefensively } from "../../domain/json.ts";
import {
  columnsOf,
  type Kind,
  MISSING_VALUES,
  type PortRows,
  perTable,
  SCHEMA,
  type Schema,
  type StoredRows as SchemaRows,
  type TableName,
} from "../schema.ts";
import { fromText, toText } from "./exact-text.ts";

export type { TableName } from "../schema.ts";

/**
 * The tables of a schema as the journal (SQLite) and the history (LanceDB) have them: rows cross thread borders as lists of
 * values in the order of these columns.
 */
type ColumnKind = "text" | "integer" | "real" | "flag" | "json";
export type Column = { name: string; kind: ColumnKind };
export type Value = string | number | null;
export type Values = Value[];

const STORED_AS: Readonly<Record<Kind, ColumnKind>> = {
  text: "text",
  time: "text",
  exact_json: "text",
  json_text: "json",
  integer: "integer",
  bigint: "integer",
  float: "real",
  boolean: "flag",
  json: "json",
};

/** Append-only: rows wait in the journal until they are moved into LanceDB. */
export const HISTORY_NAMES = ["agent_steps", "conversation_messages", "queue"] as const satisfies TableName[];
export type HistoryName = (typeof HISTORY_NAMES)[number];
/** Rows that change: the journal keeps them for good, LanceDB receives a copy from time to time. The first column is the key. */
export const SNAPSHOT_NAMES = [
  "agent_state",
  "agent_config",
  "conversations",
  "conversation_participants",
  "session_cursors",
] as const satisfies TableName[];
export type SnapshotName = (typeof SNAPSHOT_NAMES)[number];
export const isHistory = (table: string): table is HistoryName => (HISTORY_NAMES as readonly string[]).includes(table);

/** A row as it is stored: without documents, which the journal keeps apart, and with its position. */
export type StoredRows = {
  [Name in TableName]: (Name extends "agent_state"
    ? Omit<SchemaRows[Name], "params" | "context">
    : Name extends "session_cursors"
      ? SchemaRows[Name] & { cursor_key: string }
      : SchemaRows[Name]) & { pos: number };
};
/** What the port has of it. */
type PlainRows = {
  [Name in TableName]: Name extends "agent_state" ? Omit<PortRows[Name], "params"> : PortRows[Name];
};

const POSITION: Column = { name: "pos", kind: "integer" };

export class EmbeddedTables {
  readonly columns: Readonly<Record<TableName, readonly Column[]>>;
  /** Columns that the journal keeps apart from the row; a copy in LanceDB has them beside it. */
  readonly documents: Readonly<Record<TableName, readonly Column[]>>;
  readonly #portColumns: Readonly<Record<TableName, ReadonlySet<string>>>;

  constructor(schema: Schema) {
    const storedAs = (table: TableName, isDocument: boolean): Column[] =>
      columnsOf(schema, table)
        .filter((column) => column.isDocument === isDocument)
        .map(({ name, kind }) => ({ name, kind: STORED_AS[kind] }));
    this.columns = perTable((table) => withPosition(table, storedAs(table, false)));
    this.documents = perTable((table) => storedAs(table, true));
    this.#portColumns = perTable(
      (table) =>
        new Set(
          columnsOf(schema, table)
            .filter(({ isOwn, kind }) => !isOwn && kind !== "exact_json")
            .map(({ name }) => name),
        ),
    );
  }

  /** The row's fields in column order; a field that the row does not have is null. */
  toValues(table: TableName, row: Record<string, unknown>): Values {
    return this.columns[table].map(({ name, kind }) => {
      const value = row[name];
      if (kind === "json") return JSON.stringify(value ?? null);
      if (value === undefined || value === null) return null;
      if (kind === "flag") return Number(value);
      return typeof value === "string" ? toText(value) : (value as Value);
    });
  }

  toStored<Name extends TableName>(table: Name, values: Values): StoredRows[Name] {
    return this.#decode(table, values, () => true) as StoredRows[Name];
  }

  /** Without what only the store needs. */
  toPort<Name extends TableName>(table: Name, values: Values): PlainRows[Name] {
    const names = this.#portColumns[table];
    return this.#decode(table, values, (name) => names.has(name)) as PlainRows[Name];
  }

  #decode(table: TableName, values: Values, isPart: (name: string) => boolean): Record<string, unknown> {
    const row: Record<string, unknown> = {};
    const missing: Readonly<Record<string, unknown>> = MISSING_VALUES[table] ?? {};
    for (const [index, { name, kind }] of this.columns[table].entries()) {
      if (!isPart(name)) continue;
      const value = values[index] ?? null;
      if (value === null && name in missing) row[name] = missing[name];
      else if (kind === "json") row[name] = parseDefensively(value as string | null);
      else if (kind === "flag") row[name] = Boolean(value);
      else row[name] = typeof value === "string" ? fromText(value) : value;
    }
    return row;
  }
}

/** Rows of history begin with their position, the others with their key. */
function withPosition(table: TableName, columns: readonly Column[]): Column[] {
  if (isHistory(table)) return [POSITION, ...columns];
  if (table === "session_cursors") return [{ name: "cursor_key", kind: "text" }, POSITION, ...columns];
  const [key, ...others] = columns as [Column, ...Column[]];
  return [key, POSITION, ...others];
}

/** Those of this version. */
export const EMBEDDED_TABLES = new EmbeddedTables(SCHEMA);
export const TABLES = EMBEDDED_TABLES.columns;

/**
 * Where a column is that the code names. It is the same in every schema: columns are only ever appended (SCHEMA-2).
 */
export const columnIndex = (table: TableName, column: string): number =>
  TABLES[table].findIndex(({ name }) => name === column);

/** Joins the parts of a composed key. Ids have no control characters, so no two keys can be confused. */
const KEY_SEPARATOR = "\u0001";
export const composedKey = (...parts: string[]): string => parts.join(KEY_SEPARATOR);
export const splitKey = (key: string): string[] => key.split(KEY_SEPARATOR);
