import { GUIDANCE_TYPES } from "../../domain/action-type.ts";
import { isObject, type JsonValue, parseDefensively } from "../../domain/json.ts";
import { LIVE_STATUSES } from "../../domain/session.ts";
import { words } from "../../domain/words.ts";
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

/** A column of a statement's input. The values of all rows are sent as one array. */
export type InputColumn = {
  name: string;
  sql_type: string;
  /** The value of most rows, which is sent as null. The column itself must not have nulls. */
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

/** A schema's tables in PostgreSQL: column names and types, and the encoding of rows. */
export class Tables {
  readonly #columns: Readonly<Record<TableName, readonly Column[]>>;
  readonly #input: Readonly<Record<TableName, readonly Column[]>>;
  readonly #port: Readonly<Record<TableName, readonly Column[]>>;

  constructor(schema: Schema) {
    this.#columns = perTable((table) => columnsOf(schema, table));
    this.#input = perTable((table) => this.#columns[table].filter(({ name }) => name !== ASSIGNED[table]));
    // States are rebuilt by the reader.
    this.#port = perTable((table) => this.#columns[table].filter(({ isOwn, kind }) => !isOwn && kind !== "exact_json"));
  }

  /** The columns that rows are written to. */
  input(table: TableName): InputColumn[] {
    return this.#input[table].map(({ name, kind }) => ({ name, sql_type: SQL_TYPE[kind] }));
  }

  names(table: TableName): string[] {
    return this.#input[table].map(({ name }) => name);
  }

  /** The select list for reads of the table: every column, states as text. */
  selected(table: TableName, alias: string): string {
    return this.#columns[table]
      .map(({ name, kind }) => (kind === "exact_json" ? `${alias}.${name}::text as ${name}` : `${alias}.${name}`))
      .join(", ");
  }

  /** Encodes a row in the order of `input`, with null for the columns that are left out. */
  toValues<Name extends TableName>(table: Name, row: InputRows[Name], leftOut = NONE): Scalar[] {
    return this.#input[table].map(({ name, kind }) =>
      leftOut.has(name) ? null : toValue(kind, (row as Record<string, unknown>)[name]),
    );
  }

  /** Returns a function that encodes some columns of a row. */
  encoder(table: TableName, names: readonly string[]): (row: Readonly<Record<string, unknown>>) => Scalar[] {
    const columns = this.#input[table].filter(({ name }) => names.includes(name));
    return (row) => columns.map(({ name, kind }) => toValue(kind, row[name]));
  }

  /** Columns that were not read are null. */
  toRow<Name extends TableName>(table: Name, stored: Record<string, unknown>): PortRows[Name] {
    const row: Record<string, unknown> = { ...MISSING_VALUES[table] };
    for (const { name, kind } of this.#port[table]) row[name] = fromValue(kind, stored[name]) ?? row[name] ?? null;
    return row as PortRows[Name];
  }
}

function toValue(kind: Kind, value: unknown): Scalar {
  // JSON null is stored as SQL null: readers cannot tell them apart.
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

/** Earlier versions write plain text into such a column; it is read as null. */
function documentIn(text: string): JsonValue {
  const value = parseDefensively(fromText(text));
  return isObject(value) ? value : null;
}

/**
 * PostgreSQL's `text` and `jsonb` cannot hold a zero character or half of a surrogate pair. Such values are stored as JSON text
 * behind a mark and are read back exactly.
 */
const MARK = "\u0001";
const WRAPPED = "$json";
const ZERO_OR_HALF_PAIR = /\\u(?:0000|d[89a-f])/i;

/** Control characters and halves of surrogate pairs: most texts have none and need no second look. */
const UNUSUAL = /[\p{Cc}\p{Cs}]/u;

export function toText(text: string): string {
  if (!UNUSUAL.test(text)) return text;
  const isPlain = !text.startsWith(MARK) && !text.includes("\u0000") && text.isWellFormed();
  return isPlain ? text : MARK + JSON.stringify(text);
}

export function fromText(stored: string): string {
  return stored.startsWith(MARK) ? (JSON.parse(stored.slice(1)) as string) : stored;
}

/** JSON text for a `jsonb` column. */
function toJson(value: JsonValue | object): string {
  if (Array.isArray(value) && value.length === 0) return "[]";
  const text = JSON.stringify(value);
  const mustWrap = ZERO_OR_HALF_PAIR.test(text) || isWrapped(value) || isDeep(text);
  return mustWrap ? JSON.stringify({ [WRAPPED]: text }) : text;
}

export function fromJson(stored: JsonValue): JsonValue {
  return isWrapped(stored) ? (JSON.parse(stored[WRAPPED]) as JsonValue) : stored;
}

const isWrapped = (value: unknown): value is { [WRAPPED]: string } =>
  isObject(value) && typeof value[WRAPPED] === "string" && Object.keys(value).length === 1;

/** The server's parser is recursive and has a stack of its own. */
const DEEPEST = 1000;
function isDeep(text: string): boolean {
  if (text.length <= DEEPEST * 2) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > DEEPEST) return true;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return false;
}

export type Scalar = string | number | boolean | null;

/** The array of a column that is null in all rows. */
export const NO_VALUES = "{}";

/** An array literal for a parameter. */
export function arrayOf(values: readonly Scalar[]): string {
  let text = "";
  for (const value of values) text += `,${element(value)}`;
  return `{${text.slice(1)}}`;
}

/** An array literal of one column of many rows, in which the default is null. */
export function columnArray(rows: readonly (readonly Scalar[])[], at: number, default_value?: Scalar): string {
  const isNull = (value: Scalar | undefined): boolean => value === null || value === default_value;
  if (rows.every((row) => isNull(row[at]))) return NO_VALUES;
  let text = "";
  for (const row of rows) text += isNull(row[at]) ? ",NULL" : `,${element(row[at] as Scalar)}`;
  return `{${text.slice(1)}}`;
}

const NEEDS_ESCAPES = /["\\]/;
const ESCAPED = /["\\]/g;

function element(value: Scalar): string {
  if (value === null) return "NULL";
  if (typeof value !== "string") return String(value);
  return NEEDS_ESCAPES.test(value) ? `"${value.replace(ESCAPED, "\\$&")}"` : `"${value}"`;
}

/** PostgreSQL's limits: words of 2 KiB, 16,383 positions, 255 positions of a word, 1 MiB of words. */
const LONGEST_WORD = 200;
const MOST_PLACES = 16_000;
const MOST_PLACES_OF_WORD = 250;
const MOST_CHARACTERS = 200_000;

/** A text as the full-text index stores it, folded by us so that case and diacritics do not matter. Null if it has no words. */
export function toIndexedWords(text: string | null): string | null {
  if (text === null) return null;
  const places = new Map<string, number[]>();
  let characters = 0;
  for (const [at, word] of words(text).entries()) {
    if (characters > MOST_CHARACTERS) break;
    const short = shortened(word);
    const wordPlaces = places.get(short);
    if (!wordPlaces) {
      characters += short.length + 20;
      places.set(short, [Math.min(at + 1, MOST_PLACES)]);
    } else if (wordPlaces.length < MOST_PLACES_OF_WORD && at < MOST_PLACES) {
      characters += 6;
      wordPlaces.push(at + 1);
    }
  }
  if (places.size === 0) return null;
  return [...places].map(([word, list]) => `'${word}':${list.join(",")}`).join(" ");
}

/** A query for texts that contain every word of the question. Null if it has none. */
export function toWordQuery(question: string): string | null {
  const queryWords = [...new Set(words(question).map(shortened))];
  return queryWords.length === 0 ? null : queryWords.map((word) => `'${word}'`).join(" & ");
}

const shortened = (word: string): string =>
  word.length > LONGEST_WORD ? word.slice(0, LONGEST_WORD).toWellFormed() : word;
