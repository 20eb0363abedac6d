import { existsSync } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import { type Connection, connect, Session, type Table } from "@lancedb/lancedb";
import { EverstepError } from "../domain/errors.ts";
import type { ArchivedRange, Volume } from "../domain/volume.ts";
import { syncPath } from "../files/sync-path.ts";
import { valueRows } from "../store/embedded/archive.ts";
import { toTable, toVolumeBatch, volumeSchema } from "../store/embedded/arrow-rows.ts";
import { DurableFiles } from "../store/embedded/data-folder.ts";
import { CheckedRows, checkedValues, sumOfValues } from "../store/embedded/row-checksums.ts";
import { columnIndex, EMBEDDED_TABLES, type EmbeddedTables, type Values } from "../store/embedded/tables.ts";
import { unreachable } from "../store/history-pages.ts";
import type { StoredMessageRow, StoredStepRow, VolumeReader } from "../store/store.ts";
import { messageOf } from "../store/store-errors.ts";
import { bucketOptions, folderOf, isBucket } from "./location.ts";

const TABLES = { steps: "agent_steps", messages: "conversation_messages" } as const;
type Kind = keyof typeof TABLES;
const KINDS = Object.keys(TABLES) as Kind[];
/** Rows, and characters of them, that are written as one file. */
const FILE = { rows: 100_000, characters: 32 << 20 };
/** Rows that become Arrow, or are compared, in one go: the program goes on in between. */
const SLICE = 500;
const CACHE_BYTES = 8n << 20n;
/** Tables that stay open. */
const MOST_OPEN = 32;

/** What was written, which is what has to be read back: how many rows, and their checksums added up. */
export type VolumeSum = { steps: number; messages: number; checksum: number };

/** `steps-ID`, `messages-ID`: a volume is one Lance table of each kind that it has. */
const tableName = (kind: Kind, volume_id: string): string => `${kind}-${volume_id}`;
const idIn = (name: string): string | null => /^(?:steps|messages)-(.+)$/.exec(name)?.[1] ?? null;

/**
 * The Lance files of volumes, in folders and buckets. A row is what the embedded engine makes of it (`tables.ts`), with its checksum, so
 * that both engines read what either wrote, and a volume of an earlier version has the columns that there were then.
 */
export class VolumeFiles implements VolumeReader {
  readonly #data_folder: string | null;
  readonly #tables: EmbeddedTables;
  readonly #checked: Readonly<Record<Kind, CheckedRows>>;
  readonly #connections = new Map<string, Promise<Connection>>();
  readonly #open = new Map<string, Promise<Table>>();

  /** `data_folder`: what locations are relative to that are not absolute. */
  constructor(data_folder: string | null, tables = EMBEDDED_TABLES) {
    this.#data_folder = data_folder;
    this.#tables = tables;
    this.#checked = {
      steps: new CheckedRows(tables, TABLES.steps, false),
      messages: new CheckedRows(tables, TABLES.messages, false),
    };
  }

  async steps(volume: Volume, range: ArchivedRange, from: number, count: number): Promise<StoredStepRow[]> {
    const rows = await this.#rows("steps", volume, range, from, count);
    return rows.map((values) => this.#tables.toStored("agent_steps", values));
  }

  async messages(volume: Volume, range: ArchivedRange, from: number, count: number): Promise<StoredMessageRow[]> {
    const rows = await this.#rows("messages", volume, range, from, count);
    return rows.map((values) => this.#tables.toStored("conversation_messages", values));
  }

  async findMessage(volume: Volume, message_id: string): Promise<StoredMessageRow | null> {
    const quoted = message_id.replaceAll("'", "''");
    const rows = await this.#reading(volume, "messages", async (table, columns) => {
      const query = table
        .query()
        .where(`message_id = '${quoted}'`)
        .select([...columns])
        .limit(1);
      return [...this.#whole(volume, "messages", columns, (await query.toArrow()).batches)];
    });
    return rows[0] ? this.#tables.toStored("conversation_messages", rows[0]) : null;
  }

  /** Begins to write a volume's files. */
  async writer(volume: Volume): Promise<VolumeWriter> {
    if (!isBucket(volume.location)) await mkdir(this.#folder(volume), { recursive: true, mode: 0o700 });
    const connection = await this.#connection(volume.location);
    return new VolumeWriter(this.#tables, async (kind) =>
      connection.createEmptyTable(tableName(kind, volume.volume_id), volumeSchema(this.#tables, TABLES[kind])),
    );
  }

  /** After it the files survive a loss of power. What a bucket has acknowledged does. */
  async sync(volume: Volume): Promise<void> {
    if (isBucket(volume.location)) return;
    const folder = this.#folder(volume);
    for (const kind of KINDS) {
      const path = join(folder, `${tableName(kind, volume.volume_id)}.lance`);
      if (existsSync(path)) await new DurableFiles().sync(path);
    }
    for (const path of [folder, resolve(folder, "..")]) await syncPath(path);
  }

  /** Every row again, from the files. Throws where one is not what was written. */
  async sum(volume: Volume, kinds: readonly Kind[]): Promise<VolumeSum> {
    const sum: VolumeSum = { steps: 0, messages: 0, checksum: 0 };
    for (const kind of kinds) {
      await this.#reading(volume, kind, async (table, columns) => {
        for await (const batch of table.query().select([...columns])) {
          let rows = 0;
          for (const values of this.#whole(volume, kind, columns, [batch as never])) {
            add(sum, kind, values);
            rows += 1;
            if (rows % SLICE === 0) await nextTick();
          }
          await nextTick();
        }
        return null;
      });
    }
    return sum;
  }

  /** Bytes that its files take; in a bucket, what LanceDB knows of them. */
  async size(volume: Volume, kinds: readonly Kind[]): Promise<number> {
    let bytes = 0;
    for (const kind of kinds) {
      const path = join(this.#folder(volume), `${tableName(kind, volume.volume_id)}.lance`);
      bytes += isBucket(volume.location)
        ? await this.#reading(volume, kind, async (table) => (await table.stats()).totalBytes)
        : await bytesIn(path);
    }
    return bytes;
  }

  /** Ids of the volumes that have files in a place. */
  async present(location: string): Promise<Set<string>> {
    if (!isBucket(location) && !existsSync(folderOf(location, this.#data_folder))) return new Set();
    const connection = await this.#connection(location);
    const ids = new Set<string>();
    for (let startAfter: string | undefined; ; ) {
      const names = await guard(location, () =>
        connection.tableNames({ limit: 1000, ...(startAfter === undefined ? {} : { startAfter }) }),
      );
      for (const name of names) {
        const id = idIn(name);
        if (id !== null) ids.add(id);
      }
      if (names.length < 1000) return ids;
      startAfter = names.at(-1);
    }
  }

  /** Deletes a volume's files, whatever is left of them. */
  async remove(location: string, volume_id: string): Promise<void> {
    for (const kind of KINDS) {
      const name = tableName(kind, volume_id);
      this.#forget(location, name);
      if (!isBucket(location)) {
        await rm(join(folderOf(location, this.#data_folder), `${name}.lance`), { recursive: true, force: true });
        continue;
      }
      const connection = await this.#connection(location);
      await guard(location, () => connection.dropTable(name).catch(ignoreMissing));
    }
  }

  async close(): Promise<void> {
    for (const table of await Promise.allSettled(this.#open.values()))
      if (table.status === "fulfilled") table.value.close();
    for (const one of await Promise.allSettled(this.#connections.values()))
      if (one.status === "fulfilled") one.value.close();
    this.#open.clear();
    this.#connections.clear();
  }

  async #rows(kind: Kind, volume: Volume, range: ArchivedRange, from: number, count: number): Promise<Values[]> {
    const first = range.first_row + from;
    const offsets = Array.from({ length: Math.max(0, Math.min(count, range.rows - from)) }, (_, at) => first + at);
    if (offsets.length === 0) return [];
    const rows = await this.#reading(volume, kind, async (table, columns) => {
      const taken = await table
        .takeOffsets(offsets)
        .select([...columns])
        .toArrow();
      return [...this.#whole(volume, kind, columns, taken.batches)];
    });
    const isInPlace = rows.every((row, at) => isOf(kind, range, row, from + at));
    if (rows.length === offsets.length && isInPlace) return rows;
    throw damaged(volume, `rows of ${range.owner_id} are not where they were written`);
  }

  /** Rows as they were written; columns that an earlier version did not have are null. */
  *#whole(
    volume: Volume,
    kind: Kind,
    columns: readonly string[],
    batches: Parameters<typeof valueRows>[0],
  ): Generator<Values> {
    const checked = this.#checked[kind];
    const places = checked.columns.map((name) => columns.indexOf(name));
    for (const read of valueRows(batches, columns)) {
      const row = checked.check(places.map((place) => (place < 0 ? null : (read[place] ?? null))));
      if (!row) throw damaged(volume, `a row of ${TABLES[kind]} does not match its checksum`);
      yield row;
    }
  }

  async #reading<Result>(
    volume: Volume,
    kind: Kind,
    work: (table: Table, columns: readonly string[]) => Promise<Result>,
  ): Promise<Result> {
    return guard(volume.location, async () => {
      const table = await this.#table(volume, kind);
      const present = new Set((await table.schema()).fields.map(({ name }) => name));
      try {
        return await work(
          table,
          this.#checked[kind].columns.filter((name) => present.has(name)),
        );
      } catch (error) {
        if (error instanceof EverstepError || isBucket(volume.location)) throw error;
        throw damaged(volume, messageOf(error), error);
      }
    });
  }

  #table(volume: Volume, kind: Kind): Promise<Table> {
    const name = tableName(kind, volume.volume_id);
    const key = `${volume.location} ${name}`;
    const open = this.#open.get(key) ?? this.#openTable(volume, name);
    this.#open.delete(key);
    this.#open.set(key, open);
    open.catch(() => this.#open.delete(key));
    const [oldest] = this.#open.keys();
    if (this.#open.size > MOST_OPEN && oldest !== undefined) this.#open.delete(oldest);
    return open;
  }

  async #openTable(volume: Volume, name: string): Promise<Table> {
    const path = join(this.#folder(volume), `${name}.lance`);
    if (!isBucket(volume.location) && !existsSync(path))
      throw unreachable(
        `${resolve(path)} is not there, which holds archived history`,
        "put the folder of volumes back where it was",
      );
    const connection = await this.#connection(volume.location);
    try {
      return await connection.openTable(name);
    } catch (error) {
      throw isBucket(volume.location) ? error : damaged(volume, messageOf(error), error);
    }
  }

  #forget(location: string, name: string): void {
    this.#open.delete(`${location} ${name}`);
  }

  #folder({ location }: Volume): string {
    return folderOf(location, this.#data_folder);
  }

  #connection(location: string): Promise<Connection> {
    const connection =
      this.#connections.get(location) ??
      guard(location, () =>
        connect(folderOf(location, this.#data_folder), {
          session: new Session(CACHE_BYTES, CACHE_BYTES),
          ...(isBucket(location) && { storageOptions: bucketOptions(process.env) }),
        }),
      );
    this.#connections.set(location, connection);
    connection.catch(() => this.#connections.delete(location));
    return connection;
  }
}

/** Writes rows in the order they come, and says where each one stands. */
export class VolumeWriter {
  readonly written: VolumeSum = { steps: 0, messages: 0, checksum: 0 };
  readonly #tables: EmbeddedTables;
  readonly #create: (kind: Kind) => Promise<Table>;
  readonly #open = new Map<Kind, Table>();
  readonly #waiting: Record<Kind, Values[]> = { steps: [], messages: [] };
  #characters = 0;

  constructor(tables: EmbeddedTables, create: (kind: Kind) => Promise<Table>) {
    this.#tables = tables;
    this.#create = create;
  }

  /** The kinds that it has rows of. */
  get kinds(): Kind[] {
    return KINDS.filter((kind) => this.written[kind] > 0);
  }

  get characters(): number {
    return this.#characters;
  }

  add(kind: "steps", row: StoredStepRow): Promise<void>;
  add(kind: "messages", row: StoredMessageRow): Promise<void>;
  async add(kind: Kind, row: StoredStepRow | StoredMessageRow): Promise<void> {
    const values = checkedValues(this.#tables, TABLES[kind], this.#tables.toValues(TABLES[kind], row, row));
    add(this.written, kind, values.slice(0, -1));
    this.#waiting[kind].push(values);
    for (const value of values) this.#characters += typeof value === "string" ? value.length : 8;
    const { length } = this.#waiting[kind];
    if (length % SLICE === 0) await nextTick();
    if (length >= FILE.rows || this.#characters >= FILE.characters) await this.#write(kind);
  }

  async finish(): Promise<void> {
    for (const kind of KINDS) await this.#write(kind);
    for (const table of this.#open.values()) table.close();
  }

  async #write(kind: Kind): Promise<void> {
    const rows = this.#waiting[kind];
    this.#waiting[kind] = [];
    this.#characters = 0;
    if (rows.length === 0) return;
    const batches = [];
    while (rows.length > 0) {
      batches.push(toVolumeBatch(this.#tables, TABLES[kind], rows.splice(0, SLICE * 8)));
      await nextTick();
    }
    const table = this.#open.get(kind) ?? (await this.#create(kind));
    this.#open.set(kind, table);
    await table.add(toTable(batches));
  }
}

const PLACE = {
  steps: { owner: columnIndex("agent_steps", "session_id"), number: columnIndex("agent_steps", "iteration") },
  messages: {
    owner: columnIndex("conversation_messages", "conversation_id"),
    number: columnIndex("conversation_messages", "number"),
  },
} as const;

/** A row's own checksum is of its text; what the store assigned to it is added here. */
function add(sum: VolumeSum, kind: Kind, values: Values): void {
  sum[kind] += 1;
  const used = values.slice(0, values.findLastIndex((value) => value !== null) + 1);
  const row = sumOfValues(...used.map((value) => (typeof value === "string" ? value.length : value)));
  sum.checksum = (sum.checksum + row) | 0;
}

function isOf(kind: Kind, range: ArchivedRange, row: Values, at: number): boolean {
  const { owner, number } = PLACE[kind];
  if (row[owner] !== range.owner_id) return false;
  const place = Number(row[number]);
  return kind === "messages" ? place === range.first + at : place >= range.first && place <= range.last + 1;
}

const damaged = ({ volume_id, location }: Volume, what: string, cause?: unknown): EverstepError =>
  new EverstepError(
    "archive_damaged",
    `volume ${volume_id} in ${location} is damaged: ${what}`,
    "put its files back from a copy; sessions in other volumes can be read",
    cause,
  );

async function guard<Result>(location: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EverstepError) throw error;
    const next = isBucket(location)
      ? "check the bucket, AWS_ENDPOINT_URL and the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), then ask again"
      : "look at the disk that it is on";
    throw unreachable(`the volumes in ${location} cannot be reached (${messageOf(error).slice(0, 500)})`, next, error);
  }
}

function ignoreMissing(error: unknown): void {
  if (!/not found|was not found|does not exist/i.test(String(error))) throw error;
}

async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }))
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size;
  return bytes;
}
