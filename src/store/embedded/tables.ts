import { parseDefensively } from "../../domain/json.ts";
import {
  BOOKKEEPING_TABLES,
  type BookkeepingTable,
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

export type { TableName } from "../schema.ts";

/**
 * The tables of a schema in the journal (SQLite) and the history (LanceDB): rows cross threads as arrays of values in the order
 * of these columns.
 */
type ColumnKind = "text" | "integer" | "real" | "flag" | "json";
/** `isOwn`: the store assigns the value; the port's row does not have it. */
export type Column = { name: string; kind: ColumnKind; isOwn?: boolean };
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

/** Append-only: rows wait in the journal until they are archived in LanceDB. */
export const HISTORY_NAMES = ["agent_steps", "conversation_messages", "queue"] as const satisfies TableName[];
export type HistoryName = (typeof HISTORY_NAMES)[number];
/** Rows that change: the journal keeps them, LanceDB gets a copy from time to time. The first column is the key. */
export const SNAPSHOT_NAMES = [
  "agent_state",
  "agent_config",
  "conversations",
  "conversation_participants",
  "session_cursors",
] as const satisfies TableName[];
export type SnapshotName = (typeof SNAPSHOT_NAMES)[number];
/** Rows that change and are eventually removed: only the journal has them. They have no position (0). */
export const isJournalOnly = (table: string): table is BookkeepingTable =>
  (BOOKKEEPING_TABLES as readonly string[]).includes(table);
export const isHistory = (table: string): table is HistoryName => (HISTORY_NAMES as readonly string[]).includes(table);

/** A row as stored: without documents, which the journal keeps apart, and with its position. */
export type StoredRows = {
  [Name in TableName]: (Name extends "agent_state"
    ? Omit<SchemaRows[Name], "params" | "context">
    : Name extends "session_cursors"
      ? SchemaRows[Name] & { cursor_key: string }
      : SchemaRows[Name]) & { pos: number };
};
/** The port's part of it. */
type PlainRows = {
  [Name in TableName]: Name extends "agent_state" ? Omit<PortRows[Name], "params"> : PortRows[Name];
};

const POSITION: Column = { name: "pos", kind: "integer", isOwn: true };

export class EmbeddedTables {
  readonly columns: Readonly<Record<TableName, readonly Column[]>>;
  /** Columns that the journal keeps apart from the row; a copy in LanceDB has them in the row. */
  readonly documents: Readonly<Record<TableName, readonly Column[]>>;
  /** The value of each column for rows that end before it. */
  readonly #missing: Readonly<Record<TableName, readonly unknown[]>>;
  readonly #decoders: Readonly<Record<TableName, readonly Decoder[]>>;
  readonly #portDecoders: Readonly<Record<TableName, readonly Decoder[]>>;

  constructor(schema: Schema) {
    const storedAs = (table: TableName, isDocument: boolean): Column[] =>
      columnsOf(schema, table)
        .filter((column) => column.isDocument === isDocument)
        .map(({ name, kind, isOwn }) => ({ name, kind: STORED_AS[kind], isOwn: isOwn || kind === "exact_json" }));
    this.columns = perTable((table) => withPosition(table, storedAs(table, false)));
    this.documents = perTable((table) => storedAs(table, true));
    this.#missing = perTable((table) => {
      const missing: Readonly<Record<string, unknown>> = MISSING_VALUES[table] ?? {};
      return this.columns[table].map(({ name }) => missing[name] ?? null);
    });
    this.#decoders = perTable((table) =>
      this.columns[table].map(({ name, kind }, at) => ({ name, kind, at, missing: this.#missing[table][at] ?? null })),
    );
    this.#portDecoders = perTable((table) => {
      const ofPort = new Set(
        columnsOf(schema, table)
          .filter(({ isOwn, kind }) => !isOwn && kind !== "exact_json")
          .map(({ name }) => name),
      );
      return this.#decoders[table].filter(({ name }) => ofPort.has(name));
    });
  }

  /**
   * The row's fields in column order; missing fields are null. It ends with the last value that differs from the default for
   * shorter rows: most rows use few of the later columns, and every step writes two rows. `own` has the store's fields.
   */
  toValues(table: TableName, row: Fields, own: Fields = NO_FIELDS): Values {
    const columns = this.columns[table];
    const width = this.#width(table, row, own);
    const values: Values = [];
    for (let at = 0; at < width; at += 1) {
      const { name, kind, isOwn } = columns[at] as Column;
      values.push(toValue(kind, (isOwn ? own : row)[name]));
    }
    return values;
  }

  #width(table: TableName, row: Fields, own: Fields): number {
    const columns = this.columns[table];
    const missing = this.#missing[table];
    let width = columns.length;
    for (; width > 0; width -= 1) {
      const { name, isOwn } = columns[width - 1] as Column;
      if (!isDefault((isOwn ? own : row)[name], missing[width - 1])) break;
    }
    return width;
  }

  toStored<Name extends TableName>(table: Name, values: Values): StoredRows[Name] {
    return decode(this.#decoders[table], values) as StoredRows[Name];
  }

  /** Without the store's own fields. */
  toPort<Name extends TableName>(table: Name, values: Values): PlainRows[Name] {
    return decode(this.#portDecoders[table], values) as PlainRows[Name];
  }

  /** Reads only these fields of a row. */
  reader<Name extends TableName, Field extends keyof StoredRows[Name] & string>(
    table: Name,
    fields: readonly Field[],
  ): (values: Values) => Pick<StoredRows[Name], Field> {
    const decoders = fields.map((field) => this.#decoders[table][columnIndex(table, field)] as Decoder);
    return (values) => decode(decoders, values) as Pick<StoredRows[Name], Field>;
  }
}

/** How a column's value is read; `missing` stands for null. */
type Decoder = { name: string; kind: ColumnKind; at: number; missing: unknown };

function decode(decoders: readonly Decoder[], values: Values): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const { name, kind, at, missing } of decoders) {
    const value = values[at] ?? null;
    if (value === null && missing !== null) row[name] = missing;
    else if (kind === "json") row[name] = parseDefensively(value as string | null);
    else if (kind === "flag") row[name] = Boolean(value);
    else row[name] = typeof value === "string" ? fromText(value) : value;
  }
  return row;
}

type Fields = Readonly<Record<string, unknown>>;
const NO_FIELDS: Fields = {};

/** Whether a value need not be stored, because it is the default for missing ones. */
const isDefault = (value: unknown, missing: unknown): boolean =>
  value === null || value === undefined || value === missing || (Array.isArray(missing) && isEmptyList(value));

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

function toValue(kind: ColumnKind, value: unknown): Value {
  const isMissing = value === undefined || value === null;
  if (kind === "json") return isMissing ? "null" : isEmptyList(value) ? "[]" : JSON.stringify(value);
  if (isMissing) return null;
  if (kind === "flag") return Number(value);
  return typeof value === "string" ? toText(value) : (value as Value);
}

/** History rows begin with their position, others with their key. */
function withPosition(table: TableName, columns: readonly Column[]): Column[] {
  if (isHistory(table)) return [POSITION, ...columns];
  if (table === "session_cursors") return [{ name: "cursor_key", kind: "text", isOwn: true }, POSITION, ...columns];
  const [key, ...others] = columns as [Column, ...Column[]];
  return [key, POSITION, ...others];
}

/** This version's tables. */
export const EMBEDDED_TABLES = new EmbeddedTables(SCHEMA);
export const TABLES = EMBEDDED_TABLES.columns;

/** The place of a column that the code names. It is the same in every schema: columns are only appended (SCHEMA-2). */
export const columnIndex = (table: TableName, column: string): number =>
  TABLES[table].findIndex(({ name }) => name === column);

/** Separates the parts of a composed key. Ids have no control characters, so keys are unambiguous. */
const KEY_SEPARATOR = "\u0001";
export const composedKey = (...parts: string[]): string => parts.join(KEY_SEPARATOR);
export const splitKey = (key: string): string[] => key.split(KEY_SEPARATOR);

/**
 * A row for the journal: its values as one JSON text, which crosses threads and enters SQLite several times faster than
 * separate values, and the values that the journal indexes.
 */
export type PackedRow = { row: string; named: (string | null)[] };

/** The values that the journal indexes. The first one is the key if the table has one. */
export const INDEXED: Readonly<Record<TableName, readonly string[]>> = {
  agent_steps: ["session_id"],
  conversation_messages: ["message_id", "conversation_id"],
  queue: ["action_id"],
  agent_state: ["session_id", "agent_id", "status", "created_at"],
  agent_config: ["agent_id"],
  conversations: ["conversation_id", "created_at"],
  conversation_participants: ["participant_id", "conversation_id"],
  session_cursors: ["cursor_key"],
  webhooks: ["webhook_id"],
  webhook_deliveries: ["delivery_id", "webhook_id", "session_id", "status", "next_attempt_at"],
  volumes: ["volume_id"],
  archived_ranges: ["range_id", "volume_id", "owner_id", "state"],
};

/** The values that the journal assigns to a row: separate columns, not part of the text. */
export const ASSIGNED: Readonly<Record<TableName, readonly string[]>> = {
  agent_steps: ["pos"],
  conversation_messages: ["pos", "number"],
  queue: ["pos"],
  agent_state: ["pos"],
  agent_config: ["pos"],
  conversations: ["pos"],
  conversation_participants: ["pos"],
  session_cursors: ["pos"],
  webhooks: ["pos"],
  webhook_deliveries: ["pos"],
  volumes: ["pos"],
  archived_ranges: ["pos"],
};

const ASSIGNED_INDEXES = Object.fromEntries(
  Object.entries(ASSIGNED).map(([table, columns]) => [
    table,
    columns.map((name) => columnIndex(table as TableName, name)),
  ]),
) as Record<TableName, number[]>;

/** `own` has the store's fields. */
export const pack = (tables: EmbeddedTables, table: TableName, row: Fields, own?: Fields): PackedRow => ({
  row: JSON.stringify(tables.toValues(table, row, own)),
  named: INDEXED[table].map((name) => (row[name] ?? own?.[name] ?? null) as string | null),
});

/** Combines the text and the assigned values; `width` is the text's number of values. */
export function unpack(
  tables: EmbeddedTables,
  table: TableName,
  row: string,
  assigned: readonly Value[],
): { values: Values; width: number } {
  const values = JSON.parse(row) as Values;
  const width = values.length;
  // It was stored before its table had these columns, or does not need them.
  for (let index = width; index < tables.columns[table].length; index += 1) values.push(null);
  for (const [at, index] of ASSIGNED_INDEXES[table].entries()) values[index] = assigned[at] ?? null;
  return { values, width };
}

/**
 * Texts as files can hold them. A lone surrogate cannot be encoded in UTF-8: such a text is stored as JSON behind a marker and
 * restored exactly. So is a text that begins with the marker.
 */
const MARKER = "\u0001";

export const toText = (text: string): string =>
  text.isWellFormed() && !text.startsWith(MARKER) ? text : MARKER + JSON.stringify(text);

export function fromText(stored: string): string {
  if (!stored.startsWith(MARKER)) return stored;
  try {
    const text: unknown = JSON.parse(stored.slice(MARKER.length));
    // Anything that `toText` would not produce was stored before there was a marker.
    return typeof text === "string" && toText(text) === stored ? text : stored;
  } catch {
    return stored;
  }
}
