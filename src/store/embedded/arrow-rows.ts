import { createRequire } from "node:module";
import type { Data, RecordBatch, Schema, Table } from "apache-arrow";
import { words } from "../../domain/words.ts";
import {
  type Column,
  columnIndex,
  composedKey,
  type EmbeddedTables,
  type HistoryName,
  isHistory,
  type TableName,
  type Values,
} from "./tables.ts";

/**
 * Arrow as LanceDB loads it, by `require`. The version for `import` would be a second copy: a quarter of the thread's start
 * time, and schemas that LanceDB does not recognize.
 */
export const arrow = createRequire(import.meta.url)("apache-arrow") as typeof import("apache-arrow");

const { Bool, Field, Float64, Int64, makeData, Struct, Utf8 } = arrow;

/** A column of a LanceDB table: one of the row's own, or one computed from them for lookups. */
type ArchiveColumn = Column & { compute?: (values: Values) => string | null };

const valueOf = (table: TableName, column: string) => {
  const index = columnIndex(table, column);
  return (values: Values) => values[index] ?? null;
};

const searchText = (table: TableName): ArchiveColumn => {
  const text = valueOf(table, "text");
  return { name: "search_text", kind: "text", compute: (values) => searchable(text(values) as string | null) };
};

const searchable = (text: string | null): string | null => (text === null ? null : words(text).join(" "));

/** Text order of the key is the order of rows within their session or conversation, so a page is one range. */
export const sortKey = (id: string, number: number): string => composedKey(id, String(number).padStart(12, "0"));

const sortKeyColumn = (table: TableName, id: string, number: string): ArchiveColumn => {
  const idOf = valueOf(table, id);
  const numberOf = valueOf(table, number);
  return {
    name: "sort_key",
    kind: "text",
    compute: (values) => sortKey(idOf(values) as string, Number(numberOf(values))),
  };
};

const COMPUTED: Partial<Record<TableName, ArchiveColumn[]>> = {
  agent_steps: [sortKeyColumn("agent_steps", "session_id", "iteration"), searchText("agent_steps")],
  conversation_messages: [
    sortKeyColumn("conversation_messages", "conversation_id", "number"),
    searchText("conversation_messages"),
  ],
};

/** History rows have their checksum after their own values. */
const archiveColumns = (tables: EmbeddedTables, table: TableName): ArchiveColumn[] => [
  ...tables.columns[table],
  ...(isHistory(table) ? [{ name: "checksum", kind: "integer" } as const] : []),
  ...(COMPUTED[table] ?? []),
  ...tables.documents[table],
];

export function archiveSchema(tables: EmbeddedTables, table: TableName): Schema {
  return new arrow.Schema(
    archiveColumns(tables, table).map(({ name, kind }) => new Field(name, arrowType(kind), true)),
  );
}

export function columnSchema(tables: EmbeddedTables, table: TableName, columns: readonly string[]): Schema {
  return new arrow.Schema(archiveSchema(tables, table).fields.filter(({ name }) => columns.includes(name)));
}

export const toBatch = (tables: EmbeddedTables, table: TableName, rows: Values[]): RecordBatch =>
  batchOf(archiveColumns(tables, table), archiveSchema(tables, table), rows);

/** Volumes are neither searched nor indexed: they have a row's own values and its checksum. */
const volumeColumns = (tables: EmbeddedTables, table: HistoryName): ArchiveColumn[] => [
  ...tables.columns[table],
  { name: "checksum", kind: "integer" },
];

export const volumeSchema = (tables: EmbeddedTables, table: HistoryName): Schema =>
  new arrow.Schema(volumeColumns(tables, table).map(({ name, kind }) => new Field(name, arrowType(kind), true)));

export const toVolumeBatch = (tables: EmbeddedTables, table: HistoryName, rows: Values[]): RecordBatch =>
  batchOf(volumeColumns(tables, table), volumeSchema(tables, table), rows);

/** Builds an Arrow batch column by column: several times faster than the general builder. */
function batchOf(columns: readonly ArchiveColumn[], schema: Schema, rows: Values[]): RecordBatch {
  const children = columns.map((column, index) => columnData(column, rows, index));
  return new arrow.RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: rows.length, nullCount: 0, children }),
  );
}

export const toTable = (batches: RecordBatch[]): Table => new arrow.Table(batches);

function arrowType(kind: Column["kind"]) {
  switch (kind) {
    case "integer":
      return new Int64();
    case "real":
      return new Float64();
    case "flag":
      return new Bool();
    case "text":
    case "json":
      return new Utf8();
  }
  return kind satisfies never;
}

function columnData({ kind, compute }: ArchiveColumn, rows: Values[], index: number): Data {
  const valueAt = (row: Values) => (compute ? compute(row) : (row[index] ?? null));
  const length = rows.length;
  const nullBitmap = new Uint8Array((length + 7) >> 3);
  let nullCount = 0;
  const markPresent = (at: number) => {
    nullBitmap[at >> 3] = (nullBitmap[at >> 3] as number) | (1 << (at & 7));
  };
  if (kind === "text" || kind === "json") {
    const texts = rows.map((row) => valueAt(row) as string | null);
    for (const [row, text] of texts.entries()) {
      if (text === null) nullCount++;
      else markPresent(row);
    }
    return makeData({ type: new Utf8(), length, nullCount, nullBitmap, ...encoded(texts) });
  }
  const integers = new BigInt64Array(kind === "integer" ? length : 0);
  const reals = new Float64Array(kind === "real" ? length : 0);
  const flags = new Uint8Array(kind === "flag" ? (length + 7) >> 3 : 0);
  for (const [row, values] of rows.entries()) {
    const value = valueAt(values);
    if (value === null) {
      nullCount++;
      continue;
    }
    markPresent(row);
    if (kind === "integer") integers[row] = BigInt(value);
    else if (kind === "real") reals[row] = Number(value);
    else if (value) flags[row >> 3] = (flags[row >> 3] as number) | (1 << (row & 7));
  }
  const common = { length, nullCount, nullBitmap };
  if (kind === "integer") return makeData({ type: new Int64(), ...common, data: integers });
  if (kind === "real") return makeData({ type: new Float64(), ...common, data: reals });
  return makeData({ type: new Bool(), ...common, data: flags });
}

/** All at once if each character takes one byte: a call for each text costs more than its characters. */
function encoded(texts: readonly (string | null)[]): { data: Buffer; valueOffsets: Int32Array } {
  const data = Buffer.from(texts.join(""));
  const valueOffsets = new Int32Array(texts.length + 1);
  const setOffsets = (parts: readonly ({ length: number } | null)[]): number => {
    let end = 0;
    for (const [row, part] of parts.entries()) valueOffsets[row + 1] = end += part?.length ?? 0;
    return end;
  };
  if (setOffsets(texts) === data.length) return { data, valueOffsets };
  const parts = texts.map((text) => Buffer.from(text ?? ""));
  setOffsets(parts);
  return { data: Buffer.concat(parts), valueOffsets };
}
