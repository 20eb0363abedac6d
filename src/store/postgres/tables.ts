import { GUIDANCE_TYPES } from "../../domain/action-type.ts";
import { isObject, type JsonValue, parseDefensively } from "../../domain/json.ts";
import { LIVE_STATUSES } from "../../domain/session.ts";
import {
  type Column,
  columnsOf,
  type Kind,
  MISSING_VALUES,
  type PortRows,
  perTable,
  type Schema,
  type StoredRows,
  type TableName,
} from "../schema.ts";
import { fromJson, fromText, type Scalar, toJson, toText } from "./value-encoding.ts";

/** A column of the rows that a statement is given, all rows of a column as one array. */
export type InputColumn = {
  name: string;
  sql_type: string;
  /** What most rows have in it. It need not be sent, so the column must have no nulls. */
  default_value?: Scalar | undefined;
};

/** A row on its way into a table. */
type InputRows = { [Name in TableName]: Omit<StoredRows[Name], "number"> };

/** Columns that the database fills in. */
const ASSIGNED: Partial<Record<TableName, string>> = { conversation_messages: "number" };

const SQL_TYPE: Readonly<Record<Kind, string>> = {
  text: "text",
  time: "timestamptz",
  integer: "integer",
  bigint: "bigint",
  float: "double precision",
  boolean: "boolean",
  json: "jsonb",
  exact_json: "json",
  json_text: "text",
};

const sqlList = (texts: Iterable<string>): string => [...texts].map((text) => `'${text}'`).join(", ");
export const LIVE = sqlList(LIVE_STATUSES);
/** The types of actions that carry guidance. */
export const GUIDANCE = sqlList(GUIDANCE_TYPES);

const NONE: ReadonlySet<string> = new Set();

/** The tables of a schema as PostgreSQL has them: names and types of columns, and rows to values and back. */
export class Tables {
  readonly #columns: Readonly<Record<TableName, readonly Column[]>>;
  readonly #input: Readonly<Record<TableName, readonly Column[]>>;
  readonly #port: Readonly<Record<TableName, readonly Column[]>>;

  constructor(schema: Schema) {
    this.#columns = perTable((table) => columnsOf(schema, table));
    this.#input = perTable((table) => this.#columns[table].filter(({ name }) => name !== ASSIGNED[table]));
    // States are rebuilt by whoever reads them.
    this.#port = perTable((table) => this.#columns[table].filter(({ isOwn, kind }) => !isOwn && kind !== "exact_json"));
  }

  /** The columns that rows are written to. */
  input(table: TableName): InputColumn[] {
    return this.#input[table].map(({ name, kind }) => ({ name, sql_type: SQL_TYPE[kind] }));
  }

  names(table: TableName): string[] {
    return this.#input[table].map(({ name }) => name);
  }

  /** What a read of the table selects: every column, states as text. */
  selected(table: TableName, alias: string): string {
    return this.#columns[table]
      .map(({ name, kind }) => (kind === "exact_json" ? `${alias}.${name}::text as ${name}` : `${alias}.${name}`))
      .join(", ");
  }

  /** A row as values, in the order of `input`; null for those left out. */
  toValues<Name extends TableName>(table: Name, row: InputRows[Name], leftOut = NONE): Scalar[] {
    return this.#input[table].map(({ name, kind }) =>
      leftOut.has(name) ? null : toValue(kind, (row as Record<string, unknown>)[name]),
    );
  }

  /** Takes the values of some columns from a row. */
  encoder<Name extends TableName>(table: Name, names: readonly string[]): (row: InputRows[Name]) => Scalar[] {
    const columns = this.#input[table].filter(({ name }) => names.includes(name));
    return (row) => columns.map(({ name, kind }) => toValue(kind, (row as Record<string, unknown>)[name]));
  }

  /** Columns that were not read are null. */
  toRow<Name extends TableName>(table: Name, stored: Record<string, unknown>): PortRows[Name] {
    const row: Record<string, unknown> = { ...MISSING_VALUES[table] };
    for (const { name, kind } of this.#port[table]) row[name] = fromValue(kind, stored[name]) ?? row[name] ?? null;
    return row as PortRows[Name];
  }
}

function toValue(kind: Kind, value: unknown): Scalar {
  // A document that is null is stored as none: nobody can tell the two apart.
  if (value === null || value === undefined) return null;
  if (kind === "json") return toJson(value);
  if (kind === "json_text") return toText(JSON.stringify(value));
  return kind === "text" ? toText(value as string) : (value as Scalar);
}

function fromValue(kind: Kind, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (kind === "json") return fromJson(value as JsonValue);
  if (kind === "json_text") return documentIn(value as string);
  return kind === "text" ? fromText(value as string) : value;
}

/** A program of an earlier version writes plain texts into such a column; they are none. */
function documentIn(text: string): JsonValue {
  const value = parseDefensively(fromText(text));
  return isObject(value) ? value : null;
}
