import { setImmediate as nextTick } from "node:timers/promises";
import type { RecordBatch } from "apache-arrow";
import type { Archive } from "./archive.ts";
import { toBatch } from "./arrow-rows.ts";
import type { Journal, WaitingRows } from "./journal.ts";
import {
  type EmbeddedTables,
  HISTORY_NAMES,
  type HistoryName,
  SNAPSHOT_NAMES,
  type SnapshotName,
  TABLES,
  type TableName,
  type Value,
  type Values,
} from "./tables.ts";
import type { Size } from "./thread-messages.ts";

export type Tuning = {
  /** Rows waiting in the journal that trigger a checkpoint. Default 50,000. */
  move_after_rows: number;
  /** Characters of such rows that trigger one. Default 64 Mi. */
  move_after_characters: number;
  /** The longest time a row waits in the journal, in milliseconds. Default 30,000. */
  move_after_ms: number;
  /** Fragments of a LanceDB table that trigger its compaction; more for a large table. Default 24. */
  compact_after_fragments: number;
};
export const DEFAULT_TUNING: Tuning = {
  move_after_rows: 50_000,
  move_after_characters: 64 << 20,
  move_after_ms: 30_000,
  compact_after_fragments: 24,
};

/** Which tables a checkpoint compacts. */
type Compaction = "all" | "if due" | "never";
const TABLE_NAMES: readonly TableName[] = [...HISTORY_NAMES, ...SNAPSHOT_NAMES];

/** Converted to Arrow at once: the work of the journal's thread between two commits. */
const CHUNK: Size = { rows: 1000, characters: 4 << 20 };
/** Rows removed at once. */
const TRIM = 2000;
/** One append: fewer, larger fragments, within the thread's memory and far below the 2 GiB of an Arrow column. */
const APPEND: Size = { rows: 16_000, characters: 16 << 20 };
/** Above this backlog commits wait for the archiver, so that the journal cannot grow without bound. */
const BACKLOG_LIMIT: Size = { rows: 200_000, characters: 2 ** 31 };
/** Copies of snapshots only serve readers of the LanceDB tables, so they may lag by this many milliseconds. */
const COPY_EVERY_MS = 60_000;
const RETRY_MS = 1000;
const SWEEP_EVERY = 16;
/** A table is allowed one more fragment per this many rows: rewriting it costs more. */
const ROWS_PER_FRAGMENT_ALLOWED = 25_000;

/**
 * Moves final rows from the journal into LanceDB, in this order (a checkpoint), so that SIGKILL or power loss at any point
 * neither loses nor duplicates a row:
 *
 * ARCHIVER-1  append rows up to a position; a table is announced in the journal before it is created
 * ARCHIVER-2  sync the files
 * ARCHIVER-3  record the tables' versions and the position in the journal, durably
 * ARCHIVER-4  remove the rows up to that position from the journal
 * ARCHIVER-5  compact if due, then sync and record likewise: a compaction may take long, and what was moved before must not be
 *             lost with it, or a process that is killed often would never get on
 * ARCHIVER-6  drop versions older than those recorded
 *
 * A restart rewinds to the recorded versions, removes the files that only later ones used (data-folder.ts), and archives again what
 * came after them.
 */
export class Archiver {
  /** Per table, the position up to which readers use LanceDB, and after which the journal. */
  readonly archivedUpTo: Map<HistoryName, number>;
  checkpoints = 0;
  compactions = 0;
  /** Why the last checkpoint failed; null if it succeeded. */
  failure: string | null = null;
  readonly #journal: Journal;
  readonly #archive: Archive;
  readonly #tuning: Tuning;
  readonly #failed: (failure: unknown) => void;
  readonly #backlog: Size = { rows: 0, characters: 0 };
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** Requested checkpoints: they go before automatic ones. */
  #requests = 0;
  #copiedAt = Date.now();
  #closed = false;
  #roomWaiters: (() => void)[] = [];
  readonly #trimmed = new Map<HistoryName, number>();

  /** `failed` is called once for each reason why checkpoints fail. */
  constructor(journal: Journal, archive: Archive, tuning: Tuning, failed: (failure: unknown) => void) {
    this.#failed = failed;
    this.#journal = journal;
    this.#archive = archive;
    this.#tuning = tuning;
    const archived = journal.archived();
    this.archivedUpTo = new Map(HISTORY_NAMES.map((name) => [name, archived.get(name)?.pos ?? 0]));
    for (const name of HISTORY_NAMES) this.#count(journal.measureUnarchived(name, this.#positionOf(name)), 1);
    if (this.#backlog.rows > 0) this.#schedule();
  }

  /** Rows that wait to be archived. */
  get backlog(): number {
    return this.#backlog.rows;
  }

  /** Called after every commit with what it added to the history. */
  added(size: Size): void {
    this.#count(size, 1);
    this.#schedule();
  }

  #count({ rows, characters }: Size, direction: 1 | -1): void {
    this.#backlog.rows += rows * direction;
    this.#backlog.characters += characters * direction;
    // SQLite counts an astral character as one, JavaScript as two.
    if (this.#backlog.rows === 0) this.#backlog.characters = 0;
  }

  /** Resolves at once unless a checkpoint waits for its turn, or the backlog is too large. */
  async room(): Promise<void> {
    if (this.#running) await nextTick();
    while (exceeds(this.#backlog, BACKLOG_LIMIT) && !this.#closed)
      await new Promise<void>((resolve) => this.#roomWaiters.push(resolve));
  }

  /** Archives everything that is final now, and copies the snapshots. */
  checkpoint({ compact }: { compact: Compaction }): Promise<void> {
    return this.#inTurn(() => this.#start({ compact, copy: true }));
  }

  /** Runs the work while nothing is archived, compacted or pruned. */
  whileResting<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#inTurn(() => {
      const done = work().finally(() => {
        this.#running = undefined;
      });
      this.#running = done.then(
        () => {},
        () => {},
      );
      return done;
    });
  }

  /** Starts once nothing runs, before any automatic checkpoint. */
  async #inTurn<Result>(begin: () => Promise<Result>): Promise<Result> {
    this.#requests += 1;
    try {
      while (this.#running) await this.#running;
      return await begin();
    } finally {
      this.#requests -= 1;
      this.#schedule();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#makeRoom();
    await this.#running?.catch(() => {});
  }

  #schedule(): void {
    if (this.#running || this.#closed || this.#requests > 0) return;
    if (this.#isDue()) this.#startInBackground();
    else this.#wakeAfter(this.#tuning.move_after_ms);
  }

  #isDue(): boolean {
    const { move_after_rows, move_after_characters } = this.#tuning;
    return this.#backlog.rows >= move_after_rows || this.#backlog.characters >= move_after_characters;
  }

  #wakeAfter(ms: number): void {
    this.#timer ??= setTimeout(() => this.#startInBackground(), ms);
  }

  #startInBackground(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#running || this.#closed || this.#requests > 0) return;
    // The journal still has every row, so a failed checkpoint is simply retried. Commits report a full disk themselves.
    this.#start({ compact: "if due", copy: Date.now() - this.#copiedAt >= COPY_EVERY_MS }).then(
      () => this.#schedule(),
      () => this.#closed || this.#wakeAfter(RETRY_MS),
    );
  }

  #start(options: { compact: Compaction; copy: boolean }): Promise<void> {
    const running = this.#run(options)
      .then(
        () => {
          this.failure = null;
        },
        (error: unknown) => {
          const failure = String(error);
          if (failure !== this.failure) this.#failed(error);
          this.failure = failure;
          throw error;
        },
      )
      .finally(() => {
        this.#running = undefined;
      });
    // Cleared before those who await `running` continue, so that they can start the next one.
    this.#running = running.catch(() => {});
    return running;
  }

  async #run({ compact, copy }: { compact: Compaction; copy: boolean }): Promise<void> {
    const upTo = this.#journal.position;
    const changed = new Map<TableName, number>();
    for (const name of HISTORY_NAMES) if (await this.#moveRows(name, upTo)) changed.set(name, upTo);
    if (copy) for (const name of SNAPSHOT_NAMES) if (await this.#copySnapshots(name)) changed.set(name, upTo);
    await this.#record(changed);
    for (const name of HISTORY_NAMES) if (changed.has(name)) await this.#trim(name); // ARCHIVER-4
    // Under load the next commit does it.
    if (!this.#isDue()) this.#journal.settle();
    if (copy) this.#copiedAt = Date.now();
    if (compact !== "never") await this.#compact(compact === "all" ? TABLE_NAMES : [...changed.keys()], compact);
    this.checkpoints++;
  }

  /** ARCHIVER-5. */
  async #compact(names: readonly TableName[], compact: "all" | "if due"): Promise<void> {
    const compacted = new Map<TableName, number>();
    for (const name of names) {
      if (!this.#archive.has(name) || !(compact === "all" || (await this.#isFragmented(name)))) continue;
      await this.#archive.compact(name);
      compacted.set(name, this.#journal.archived().get(name)?.pos ?? 0);
    }
    if (compacted.size === 0) return;
    const versions = await this.#record(compacted);
    for (const [name, version] of versions) await this.#archive.prune(name, version); // ARCHIVER-6
    this.compactions++;
  }

  /** Makes the tables' current versions those that a restart uses. Returns them. */
  async #record(positions: ReadonlyMap<TableName, number>): Promise<Map<TableName, number>> {
    for (const name of positions.keys()) await this.#archive.sync(name); // ARCHIVER-2
    const marks = await Promise.all(
      [...positions].map(async ([name, pos]) => ({ name, pos, version: await this.#archive.version(name) })),
    );
    if (marks.length > 0) this.#journal.markArchived(marks); // ARCHIVER-3
    return new Map(marks.map(({ name, version }) => [name, version]));
  }

  async #moveRows(name: HistoryName, upTo: number): Promise<boolean> {
    let any = false;
    for (;;) {
      const { rows, characters, largest } = await this.#unarchived(name, upTo);
      const last = rows.at(-1)?.[0];
      if (last === undefined) return any;
      await this.#ensure(name);
      const count = rows.length;
      await this.#archive.append(name, await toBatches(this.#archive.tables, name, rows), largest); // ARCHIVER-1
      this.archivedUpTo.set(name, last as number);
      this.#count({ rows: count, characters }, -1);
      this.#makeRoom();
      any = true;
    }
  }

  /** The next rows to archive, read in small chunks. */
  async #unarchived(name: HistoryName, upTo: number): Promise<WaitingRows> {
    const rows: Values[] = [];
    let characters = 0;
    let largest = 0;
    for (let last = this.#positionOf(name); ; last = rows.at(-1)?.[0] as number) {
      const some = this.#journal.unarchived(name, last, upTo, CHUNK);
      rows.push(...some.rows);
      characters += some.characters;
      largest = Math.max(largest, some.largest);
      await nextTick();
      const isEnd = some.rows.length < CHUNK.rows && some.characters < CHUNK.characters;
      if (isEnd || rows.length >= APPEND.rows || characters >= APPEND.characters) return { rows, characters, largest };
    }
  }

  async #copySnapshots(name: SnapshotName): Promise<boolean> {
    const dirty = this.#journal.dirty.get(name) as Set<string>;
    const ids = [...dirty];
    if (ids.length === 0) return false;
    await this.#ensure(name);
    while (ids.length > 0) {
      const { some, rows } = this.#snapshots(name, ids);
      try {
        await this.#archive.upsert(name, rows);
      } catch (error) {
        for (const id of [...some, ...ids]) dirty.add(id);
        throw error;
      }
      await nextTick();
    }
    return true;
  }

  /** Takes the next ids, and their rows to copy. */
  #snapshots(name: SnapshotName, ids: string[]): { some: string[]; rows: Values[] } {
    const some: string[] = [];
    const rows: Values[] = [];
    const key = TABLES[name][0]?.name;
    for (let characters = 0; ids.length > 0 && some.length < CHUNK.rows && characters < CHUNK.characters; ) {
      const id = ids.pop() as string;
      some.push(id);
      this.#journal.dirty.get(name)?.delete(id);
      for (const row of this.#journal.snapshots(name, `WHERE ${key} = ?`, id)) {
        if (name === "agent_state") this.#addDocuments(row);
        rows.push(row);
        for (const value of row) characters += typeof value === "string" ? value.length : 8;
      }
    }
    return { some, rows };
  }

  #addDocuments(row: Values): void {
    const id = row[0] as string;
    const { params, context } = this.#journal.documents(id);
    const chain = this.#journal.chain(row);
    row.push(params, chain ? JSON.stringify(chain.state) : (context ?? "{}"));
  }

  async #ensure(name: TableName): Promise<void> {
    if (this.#archive.has(name)) return;
    if (!this.#journal.archived().has(name)) this.#journal.markArchived([{ name, version: 0, pos: 0 }]); // ARCHIVER-1
    await this.#archive.create(name);
  }

  async #isFragmented(name: TableName): Promise<boolean> {
    const { fragments, rows } = await this.#archive.size(name);
    return fragments >= this.#tuning.compact_after_fragments + rows / ROWS_PER_FRAGMENT_ALLOWED;
  }

  async #trim(name: HistoryName): Promise<void> {
    // Rows kept for live sessions are checked again only now and then: there may be many, and they are small.
    const sweep = this.checkpoints % SWEEP_EVERY === 0;
    const upTo = this.#positionOf(name);
    let after: number | null = sweep ? 0 : (this.#trimmed.get(name) ?? 0);
    while (after !== null) {
      after = this.#journal.trim(name, after, upTo, TRIM);
      await nextTick();
    }
    this.#trimmed.set(name, upTo);
    // Under load the space is needed again at once.
    if (!this.#isDue()) this.#journal.shrink();
  }

  #positionOf(name: HistoryName): number {
    return this.archivedUpTo.get(name) ?? 0;
  }

  #makeRoom(): void {
    for (const resolve of this.#roomWaiters.splice(0)) resolve();
  }
}

/** Sorts rows by session or conversation, so that a page is read from one place. Consumes the rows. */
async function toBatches(tables: EmbeddedTables, name: HistoryName, rows: Values[]): Promise<RecordBatch[]> {
  const [id, number] = CLUSTERED_BY[name].map((column) =>
    TABLES[name].findIndex((candidate) => candidate.name === column),
  ) as [number, number];
  rows.sort((a, b) => compare(a[id], b[id]) || compare(a[number], b[number]));
  const batches: RecordBatch[] = [];
  while (rows.length > 0) {
    batches.push(toBatch(tables, name, rows.splice(0, CHUNK.rows)));
    await nextTick();
  }
  return batches;
}

const CLUSTERED_BY: Readonly<Record<HistoryName, [string, string]>> = {
  agent_steps: ["session_id", "iteration"],
  conversation_messages: ["conversation_id", "number"],
  queue: ["session_id", "action_id"],
};

const exceeds = (size: Size, limit: Size): boolean => size.rows > limit.rows || size.characters > limit.characters;

const compare = (a: Value | undefined, b: Value | undefined): number => (a === b ? 0 : (a ?? "") < (b ?? "") ? -1 : 1);
