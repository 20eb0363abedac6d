import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import {
  type Connection,
  connect,
  Index,
  MatchQuery,
  Operator,
  type Query,
  Session,
  type Table,
} from "@lancedb/lancedb";
import type { RecordBatch } from "apache-arrow";
import { EverstepError } from "../../domain/errors.ts";
import { syncPath } from "../../files/sync-path.ts";
import { archiveSchema, arrow, columnSchema, toBatch, toTable } from "./arrow-rows.ts";
import { type Condition, toLance } from "./condition.ts";
import { DurableFiles, removeLeftovers } from "./data-folder.ts";
import { damaged } from "./folder-errors.ts";
import { type PageSize, PageTooLarge } from "./page-size.ts";
import { CheckedRows } from "./row-checksums.ts";
import {
  EMBEDDED_TABLES,
  type EmbeddedTables,
  HISTORY_NAMES,
  type HistoryName,
  isHistory,
  TABLES,
  type TableName,
  type Value,
  type Values,
} from "./tables.ts";

const CACHE_BYTES = 16n << 20n;
const ROW_ID = "_rowid";

/** An index description can be used only once, so these create a new one each time. */
const EXACT = () => Index.btree();
/** We split texts into words ourselves (domain/words.ts), so the index takes them as they are. */
const WORDS = () =>
  Index.fts({
    baseTokenizer: "whitespace",
    lowercase: false,
    stem: false,
    removeStopWords: false,
    asciiFolding: false,
    withPosition: false,
    maxTokenLength: 200,
  });
const INDEXES: Partial<Record<TableName, Record<string, () => Index>>> = {
  agent_steps: { sort_key: EXACT, agent_id: EXACT, search_text: WORDS },
  conversation_messages: { sort_key: EXACT, message_id: EXACT, search_text: WORDS },
  queue: { action_id: EXACT, session_id: EXACT },
};

export type Order = { columnName: string; ascending: boolean }[];
type ReadPage = { limit: number; offset: number; size: PageSize };

/** A table has rows that this writer did not write: a LanceDB operation of a dead thread went on without it. */
export class ForeignWrite extends Error {
  override readonly name = "ForeignWrite";
}

/**
 * The LanceDB tables of a folder. One caller writes (the archiver), any number read. Nothing is durable before `sync`. After
 * every write the rows of a history table are counted: if a dead thread wrote beside this one, the folder must be reopened,
 * which rewinds it to the recorded versions.
 */
export class Archive {
  readonly #folder: string;
  readonly #connection: Connection;
  readonly tables: EmbeddedTables;
  readonly #lanceTables: Map<TableName, Table>;
  readonly #checkedRows: ReadonlyMap<HistoryName, CheckedRows>;
  readonly #files = new DurableFiles();
  /** The largest row of each table, in characters. */
  readonly #largest = new Map<TableName, number>();
  /** The expected number of rows per table. */
  readonly #rows = new Map<TableName, number>();
  /** Reads in progress, which may need files of an older version. */
  readonly #reads = new Map<TableName, Set<Promise<unknown>>>();

  private constructor(
    folder: string,
    tables: EmbeddedTables,
    connection: Connection,
    lanceTables: Map<TableName, Table>,
  ) {
    this.#folder = folder;
    this.tables = tables;
    this.#connection = connection;
    this.#lanceTables = lanceTables;
    this.#checkedRows = new Map(HISTORY_NAMES.map((name) => [name, new CheckedRows(tables, name)]));
  }

  async #countRows(name: TableName, added: number): Promise<void> {
    const count = await this.#table(name).countRows();
    const expected = this.#rows.get(name);
    this.#rows.set(name, count);
    if (isHistory(name) && expected !== undefined && expected + added !== count)
      throw new ForeignWrite(`${name} has ${count} rows where ${expected + added} were written`);
  }

  /** Opens the tables at the versions that the journal recorded. */
  static async open(
    folder: string,
    archived: Map<TableName, { version: number }>,
    tables = EMBEDDED_TABLES,
  ): Promise<Archive> {
    await rewind(folder, archived);
    const connection = await connect(folder, { session: new Session(CACHE_BYTES, CACHE_BYTES) });
    const lanceTables = new Map<TableName, Table>();
    for (const [name, { version }] of archived) {
      if (version === 0) continue;
      try {
        const table = await connection.openTable(name);
        const current = await table.version();
        if (current !== version) throw new Error(`version ${version} was recorded, ${current} was found`);
        lanceTables.set(name, table);
      } catch (error) {
        throw damaged(tableFolder(folder, name), error);
      }
    }
    const archive = new Archive(folder, tables, connection, lanceTables);
    for (const name of lanceTables.keys()) await archive.#countRows(name, 0);
    return archive;
  }

  /** Right after `open`, if the last process that used the folder was killed (LEFTOVERS-1). */
  async removeLeftovers(): Promise<void> {
    for (const [name, table] of this.#lanceTables) {
      const path = tableFolder(this.#folder, name);
      const version = await table.version();
      const manifest = (await readdir(join(path, "_versions"))).find((file) => versionOf(file) === version);
      if (manifest === undefined) continue;
      const { fragments } = await this.size(name);
      await removeLeftovers(path, manifest, { fragments, indexes: (await table.listIndices()).length });
    }
  }

  has(name: TableName): boolean {
    return this.#lanceTables.has(name);
  }

  /** Only for a table whose rows are all still in the journal: leftovers of an earlier attempt are dropped. */
  async create(name: TableName): Promise<void> {
    await this.#writing(name, async () => {
      await rm(tableFolder(this.#folder, name), { recursive: true, force: true });
      const table = await this.#connection.createEmptyTable(name, archiveSchema(this.tables, name));
      for (const [column, config] of Object.entries(INDEXES[name] ?? {}))
        await table.createIndex(column, { config: config() });
      this.#lanceTables.set(name, table);
      this.#rows.set(name, 0);
    });
  }

  /** The new columns are null in existing rows. */
  async addColumns(name: TableName, columns: readonly string[]): Promise<void> {
    await this.#writing(name, (table) => table.addColumns(columnSchema(this.tables, name, columns)));
  }

  /** `largest` is the size of the largest row, in characters. */
  async append(name: TableName, batches: RecordBatch[], largest: number): Promise<void> {
    this.#largest.set(name, Math.max(largest, this.#largest.get(name) ?? 0));
    const rows = batches.reduce((sum, { numRows }) => sum + numRows, 0);
    await this.#writing(name, async (table) => {
      await table.add(toTable(batches));
      await this.#countRows(name, rows);
    });
  }

  /** Deletes rows of history, exactly so many; where there are more or fewer nothing is changed. */
  async delete(name: HistoryName, where: Condition, rows: number): Promise<void> {
    const count = await this.#table(name).countRows(toLance(where));
    if (count !== rows) throw this.missing(name, `${count} rows are there where ${rows} were copied`);
    await this.#writing(name, async (table) => {
      await table.delete(toLance(where));
      await this.#countRows(name, -rows);
    });
  }

  /** Replaces rows by their key, the first column. Keys must not repeat within one call. */
  async upsert(name: TableName, rows: Values[]): Promise<void> {
    const key = TABLES[name][0]?.name as string;
    await this.#writing(name, (table) =>
      table
        .mergeInsert(key)
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute(toTable([toBatch(this.tables, name, rows)])),
    );
  }

  async version(name: TableName): Promise<number> {
    return this.#table(name).version();
  }

  async size(name: TableName): Promise<{ fragments: number; rows: number }> {
    const { numRows, fragmentStats } = await this.#table(name).stats();
    return { fragments: fragmentStats.numFragments, rows: numRows };
  }

  /** Merges small fragments and adds new rows to the indexes. Old versions stay until `prune`. */
  async compact(name: TableName): Promise<void> {
    await this.#writing(name, async (table) => {
      limitCompaction(this.#largest.get(name) ?? 0);
      await table.optimize({ cleanupOlderThan: new Date(0) });
      await this.#countRows(name, 0);
    });
  }

  /**
   * Drops versions before the one that the journal recorded, to which a restart rewinds, once nobody reads them: a read that
   * begins from here on uses the newest version.
   */
  async prune(name: TableName, version: number): Promise<void> {
    const reads: Iterable<Promise<unknown>> = this.#reads.get(name) ?? [];
    await Promise.allSettled(reads);
    await this.#writing(name, async (table) => {
      const recorded = (await table.listVersions()).find((candidate) => candidate.version === version);
      if (recorded) await table.optimize({ cleanupOlderThan: new Date(recorded.timestamp.getTime() - 1) });
    });
  }

  async sync(name: TableName): Promise<void> {
    await this.#writing(name, () => this.#files.sync(tableFolder(this.#folder, name)));
  }

  /** `size` may abort it. */
  async read(name: HistoryName, where: Condition, order: Order, page: ReadPage): Promise<Values[]> {
    const { limit, offset, size } = page;
    if (limit <= 0) return [];
    const rows = this.#checkedRowsOf(name);
    const { columns } = rows;
    return this.#reading(name, [], async (table) => {
      const find = (query: Query): Query => {
        query.where(toLance(where)).limit(limit);
        if (order.length > 0) query.orderBy(order);
        if (offset > 0) query.offset(offset);
        return query;
      };
      // LanceDB can only sort by selected columns.
      const sorted = order.map(({ columnName }) => columnName);
      const rowOf = (values: Values): Values => {
        const row = checked(rows, values);
        size.add(row);
        return row;
      };
      return (await findRows(table, { find, sorted, columns, rowOf })).map(({ row }) => row);
    });
  }

  /** Every row, or the position of a damaged one. */
  async *each(
    name: HistoryName,
  ): AsyncGenerator<{ kind: "whole"; values: Values } | { kind: "damaged"; position: number }> {
    const table = this.#lanceTables.get(name);
    if (!table) return;
    const rows = this.#checkedRowsOf(name);
    const { columns } = rows;
    try {
      for await (const batch of inSmallBatches(table.query().select([...columns]))) {
        for (const read of valueRows([batch as ArrowBatch], columns)) {
          const values = rows.check(read);
          yield values ? { kind: "whole", values } : { kind: "damaged", position: Number(read[0]) };
        }
      }
    } catch (error) {
      throw damaged(tableFolder(this.#folder, name), error);
    }
  }

  /** Rows whose `search_text` contains every word, with their score. The column `omitted` is left null: it may be large. */
  async search(
    name: HistoryName,
    words: string[],
    where: Condition,
    limit: number,
    omitted: number | null,
  ): Promise<{ values: Values; score: number }[]> {
    const rows = this.#checkedRowsOf(name);
    return this.#reading(name, [], async (table) => {
      const match = new MatchQuery(words.join(" "), "search_text", { operator: Operator.And });
      const find = (query: Query): Query => query.fullTextSearch(match).where(toLance(where)).limit(limit);
      const rowOf = (values: Values): Values => {
        const row = checked(rows, values);
        return omitted === null ? row : row.with(omitted, null);
      };
      const hits = await findRows(table, { find, sorted: ["_score"], columns: rows.columns, rowOf });
      return hits.map(({ row, sortValues }) => ({ values: row, score: Number(sortValues[0]) }));
    });
  }

  /** The error for rows that must exist but do not. */
  missing(name: HistoryName, what: string): EverstepError {
    return damaged(tableFolder(this.#folder, name), new Error(what));
  }

  close(): void {
    for (const table of this.#lanceTables.values()) table.close();
    this.#connection.close();
  }

  #checkedRowsOf(name: HistoryName): CheckedRows {
    return this.#checkedRows.get(name) as CheckedRows;
  }

  #table(name: TableName): Table {
    const table = this.#lanceTables.get(name);
    if (!table) throw new Error(`table ${name} was not created`);
    return table;
  }

  async #reading<Result>(name: TableName, absent: Result, work: (table: Table) => Promise<Result>): Promise<Result> {
    const table = this.#lanceTables.get(name);
    if (!table) return absent;
    const reads = this.#reads.get(name) ?? new Set();
    this.#reads.set(name, reads);
    const read = work(table);
    reads.add(read);
    try {
      return await read;
    } catch (error) {
      if (error instanceof PageTooLarge) throw error;
      throw damaged(tableFolder(this.#folder, name), error);
    } finally {
      reads.delete(read);
    }
  }

  async #writing(name: TableName, work: (table: Table) => Promise<unknown>): Promise<void> {
    try {
      await work(this.#lanceTables.get(name) as Table);
    } catch (error) {
      if (error instanceof ForeignWrite) throw error;
      const path = tableFolder(this.#folder, name);
      const full = /no space left|StorageFull|os error 28|ENOSPC/i.test(String(error));
      if (full)
        throw new EverstepError(
          "store_full",
          `no space is left for ${path}`,
          "free some disk space; nothing was lost",
          error,
        );
      throw new EverstepError(
        "store_unavailable",
        `${path} cannot be written (${String(error)})`,
        "check the disk and the system's log",
        error,
      );
    }
  }
}

type RowQuery = {
  find: (query: Query) => Query;
  /** The columns that it sorts by. */
  sorted: readonly string[];
  columns: readonly string[];
  /** Called as soon as a row is read; it may abort. */
  rowOf: (values: Values) => Values;
};
/** A row, and its values of the columns that were sorted by. */
type FoundRow = { row: Values; sortValues: Values };

/**
 * The rows that a query finds, in its order: first which they are, then their columns. LanceDB reads all selected columns of every row
 * that its indexes do not cover yet, so selecting them at once takes a hundred times as long. A row's id is that of one version of the
 * table: where the version changes in between, both are read again.
 */
async function findRows(table: Table, query: RowQuery): Promise<FoundRow[]> {
  for (;;) {
    const version = await table.version();
    try {
      const matches = await query
        .find(
          table
            .query()
            .select([...query.sorted])
            .withRowId(),
        )
        .toArrow();
      const rows = await takeRows(table, matches, query);
      if ((await table.version()) === version) return rows;
    } catch (error) {
      if ((await table.version()) === version) throw error;
    }
  }
}

async function takeRows(table: Table, matches: ArrowTable, { columns, sorted, rowOf }: RowQuery): Promise<FoundRow[]> {
  if (matches.numRows === 0) return [];
  const ids: number[] = [];
  const foundRows: Values[] = [];
  for (const row of valueRows(matches.batches, [...sorted, ROW_ID])) {
    ids.push(row.pop() as number);
    foundRows.push(row);
  }
  const taken = await table
    .takeRowIds(ids)
    .select([...columns])
    .withRowId()
    .toArrow();
  // They come in the order of their ids.
  const rows = new Map<number, Values>();
  for (const values of valueRows(taken.batches, [...columns, ROW_ID])) rows.set(values.pop() as number, rowOf(values));
  return foundRows.map((values, at) => {
    const row = rows.get(ids[at] as number);
    if (!row) throw new Error(`the row with the id ${ids[at]} is missing`);
    return { row, sortValues: values };
  });
}

function checked(rows: CheckedRows, read: Values): Values {
  const row = rows.check(read);
  if (!row) throw new Error(`the row at position ${read[0]} does not match its checksum`);
  return row;
}

/** Rows may be large, and LanceDB's batches have 1,024 of them. It accepts this size as an undeclared option. */
function inSmallBatches(query: object): AsyncIterable<unknown> {
  const limited = query as { execute(options: { maxBatchLength: number }): AsyncIterable<unknown> };
  return limited.execute({ maxBatchLength: 64 });
}

type ArrowTable = Awaited<ReturnType<ReturnType<Table["query"]>["toArrow"]>>;
type ArrowBatch = ArrowTable["batches"][number];

/** One row at a time: Arrow's data is outside the heap. */
export function* valueRows(batches: readonly ArrowBatch[], columns: readonly string[]): Generator<Values> {
  for (const batch of batches) {
    const readers = columns.map((column) => valueReader(batch.getChild(column)?.data[0] as ColumnData));
    for (let at = 0; at < batch.numRows; at += 1) yield readers.map((read) => read(at));
  }
}

type ColumnData = NonNullable<ReturnType<ArrowTable["getChild"]>>["data"][number];
type ValueReader = (at: number) => Value;

/** Arrow's own readers find out the type of each value anew. */
function valueReader(data: ColumnData): ValueReader {
  const read = presentValueReader(data);
  if (data.nullCount === 0) return read;
  if (data.nullCount === data.length) return () => null;
  return (at) => (data.getValid(at) ? read(at) : null);
}

function presentValueReader(data: ColumnData): ValueReader {
  const values: unknown = data.values;
  if (arrow.DataType.isUtf8(data.type)) {
    const { buffer, byteOffset, byteLength } = values as Uint8Array;
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    const offsets = data.valueOffsets as Int32Array;
    // Arrow's own reader drops a leading byte order mark, which is part of the text.
    return (at) => bytes.toString("utf8", offsets[at], offsets[at + 1]);
  }
  if (arrow.DataType.isBool(data.type)) {
    const bits = values as Uint8Array;
    return (at) => ((bits[(data.offset + at) >> 3] as number) & (1 << ((data.offset + at) & 7)) ? 1 : 0);
  }
  return (at) => Number((values as ArrayLike<number | bigint>)[at]);
}

const SUFFIX = ".lance";
const MANIFEST = ".manifest";
const LARGEST_VERSION = 2n ** 64n - 1n;

const tableFolder = (folder: string, table: TableName): string => join(folder, `${table}${SUFFIX}`);

/**
 * Rewinds the tables on disk to the versions that the journal recorded as synced. Later writes may be torn by a power loss, and
 * all of them are still in the journal, so they are dropped and archived again.
 */
async function rewind(folder: string, archived: Map<TableName, { version: number }>): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.endsWith(SUFFIX) && !archived.has(basename(name, SUFFIX) as TableName)) throw foreign(folder, name);
  }
  for (const [table, { version }] of archived) {
    const path = tableFolder(folder, table);
    // Version 0 announces a table before it is created: none of its rows was trimmed from the journal.
    if (version === 0) await rm(path, { recursive: true, force: true });
    else await dropVersionsAfter(path, version);
  }
}

async function dropVersionsAfter(path: string, version: number): Promise<void> {
  const versions = join(path, "_versions");
  if (!existsSync(versions)) throw damaged(path, "its versions are missing");
  let dropped = false;
  for (const name of await readdir(versions)) {
    if ((versionOf(name) ?? 0) <= version) continue;
    await rm(join(versions, name));
    dropped = true;
  }
  if (!dropped) return;
  await rm(join(versions, "latest_version_hint.json"), { force: true });
  await syncPath(versions);
}

/**
 * A manifest is named by its version, or by the version's distance from the largest so that the newest is listed first. Null for
 * any other file.
 */
function versionOf(file: string): number | null {
  if (!file.endsWith(MANIFEST)) return null;
  const number = BigInt(basename(file, MANIFEST));
  return Number(number > LARGEST_VERSION / 2n ? LARGEST_VERSION - number : number);
}

const foreign = (folder: string, name: string): EverstepError =>
  new EverstepError(
    "store_foreign",
    `${resolve(folder, name)} is not a table of the journal beside it`,
    "restore the journal.sqlite that belongs to it, or use another folder in EVERSTEP_STORE; nothing was changed",
  );

/** Rows that a LanceDB compaction holds in memory at once by default. */
const DEFAULT_ROWS = 8192;
/** Fewer would be slow if only some rows are large. */
const FEWEST_ROWS = 32;
/** The most characters in these rows. An Arrow column ends at 2 GiB. */
const BATCH_CHARACTERS = 64 << 20;
const SETTING = "LANCE_DEFAULT_BATCH_SIZE";

/** LanceDB counts rows, whatever their size, and reads the count from the environment: large rows need a smaller one. */
function limitCompaction(largest_row: number): void {
  const fitting = Math.floor(BATCH_CHARACTERS / Math.max(1, largest_row));
  const rows = String(Math.max(FEWEST_ROWS, Math.min(DEFAULT_ROWS, fitting)));
  if ((process.env[SETTING] ?? String(DEFAULT_ROWS)) !== rows) process.env[SETTING] = rows;
}
