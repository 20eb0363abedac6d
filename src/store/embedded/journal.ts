import type { DatabaseSync } from "node:sqlite";
import type { BookkeepingTable } from "../schema.ts";
import { type Chain, readState, type StoredState } from "../state-delta.ts";
import { CommitCounter, type Counted, counterProblem, JournalTotals } from "./commit-counter.ts";
import { among, type Condition, matchesNothing, toSqlite } from "./condition.ts";
import { corrupt, counterPath } from "./folder-errors.ts";
import {
  type Archived,
  CHECKPOINT_PAGES,
  DELETE,
  INSERT,
  ITERATION_AT,
  JournalDatabase,
  type JournalTable,
  KEEP_KEYS,
  KEEP_NUMBER,
  LAST_NUMBER,
  LIVE_BASES,
  NUMBER_AT,
  PACKED,
  RECORD_ARCHIVED,
  REMOVE,
  STEP_AT,
  STEPS_AT,
  SUM_OF,
  UPDATE_SESSION,
  UPDATE_STATUS,
} from "./journal-database.ts";
import { type Entry, newJournalIndexes } from "./journal-index.ts";
import type { PageSize } from "./page-size.ts";
import {
  checksumOf,
  nameOfRow,
  sumOfDocuments,
  sumOfRow,
  sumOfValues,
  type VerifiedRow,
  verifiedRow,
} from "./row-checksums.ts";
import {
  columnIndex,
  type EmbeddedTables,
  HISTORY_NAMES,
  type HistoryName,
  INDEXED,
  type PackedRow,
  SNAPSHOT_NAMES,
  type SnapshotName,
  TABLES,
  type TableName,
  type Value,
  type Values,
} from "./tables.ts";
import type { BatchMessage, OutcomeMessage, SessionMessage, Size } from "./thread-messages.ts";

/** A session's row and its number in order of creation. */
export type NumberedRow = { arrival: number; values: Values };

/** Rows to archive, their total characters, and the largest row's. */
export type WaitingRows = { rows: Values[]; characters: number; largest: number };

export type RowWriter = {
  /** Adds a row or replaces the one with its key. */
  put: (table: BookkeepingTable, packed: PackedRow) => void;
  remove: (table: BookkeepingTable, key: string) => void;
};

/**
 * The journal: where a commit becomes durable, and where everything that may still change is kept.
 *
 * JOURNAL-1  A group of batches is one SQLite transaction (WAL, synchronous = FULL): durable when `apply` returns.
 * JOURNAL-2  Every row gets the next position. History rows are moved to LanceDB in that order and removed here only after
 *            `markArchived` has durably recorded that LanceDB has them on disk.
 * JOURNAL-3  A live session's steps since its last full state stay, so that its context is rebuilt without LanceDB.
 * JOURNAL-4  A row is compared with its checksum whenever it is read in full: at startup, by a reader and before it is
 *            archived.
 */
export class Journal {
  /** Bytes of row text written since it was opened. */
  bytes = 0;
  readonly #folder: string;
  readonly #tables: EmbeddedTables;
  readonly #database: JournalDatabase;
  readonly #totals: JournalTotals;
  readonly #counter: CommitCounter;
  /** Checksums of live sessions' rows, which every step replaces. */
  readonly #sessionSums = new Map<string, number>();
  /** Checksums of all open actions; null until they are read. */
  #openSums: Map<string, number> | null = null;
  /** The last message number of each conversation that was written to. */
  readonly #numbers = new Map<string, number>();
  readonly #indexes = newJournalIndexes();
  readonly #writer: RowWriter = {
    put: (table, packed) => this.#put(table, packed),
    remove: (table, key) => this.#remove(table, key),
  };
  #position: number;
  /** The position of the last commit; later ones may have been assigned to a failed one. */
  #committed: number;
  /** The number of transactions other than commits. */
  #revision: number;
  /** Whether removed rows are not synced yet. */
  #isUnsynced = false;
  /** Sessions written since the set was last emptied; null if nobody tracks them (`session-lists.ts`). */
  changed: Set<string> | null = null;
  /** Snapshots that changed since they were copied to LanceDB. */
  readonly dirty = new Map<SnapshotName, Set<string>>(SNAPSHOT_NAMES.map((name) => [name, new Set()]));

  /** `totals` are those of its contents. */
  constructor(folder: string, database: DatabaseSync, tables: EmbeddedTables, totals: JournalTotals) {
    this.#tables = tables;
    this.#folder = folder;
    this.#totals = totals;
    const indexes = Object.values(this.#indexes);
    this.#database = new JournalDatabase(folder, database, {
      onCommitted: () => {
        this.#totals.keep();
        indexes.forEach((index) => index.keep());
      },
      onRolledBack: () => {
        this.#totals.undo();
        this.#sessionSums.clear();
        this.#openSums = null;
        // A rolled-back group assigned numbers that are free again.
        this.#numbers.clear();
        indexes.forEach((index) => index.undo());
      },
    });
    this.#loadIndexes();
    const archived = this.archived();
    const positions = Object.keys(TABLES).map((name) =>
      Number(this.#database.value(`SELECT max(pos) FROM ${name}`) ?? 0),
    );
    const open = Number(this.#database.value("SELECT max(pos) FROM open_actions") ?? 0);
    this.#position = Math.max(0, open, ...positions, ...[...archived.values()].map(({ pos }) => pos));
    for (const name of SNAPSHOT_NAMES) {
      const key = TABLES[name][0]?.name;
      const copied = archived.get(name)?.pos ?? 0;
      for (const [id] of this.#database.rows(`SELECT ${key} FROM ${name} WHERE pos > ?`, copied))
        this.dirty.get(name)?.add(id as string);
    }
    this.#committed = this.#position;
    this.#revision = Number(this.#database.value("SELECT revision FROM journal_revision") ?? 0);
    this.#counter = openCounter(folder, this.#place());
  }

  #loadIndexes(): void {
    for (const table of HISTORY_NAMES) {
      const rows = this.#database.each(`SELECT pos, sum, ${INDEXED[table].join(", ")} FROM ${table} ORDER BY pos`);
      for (const [pos, sum, ...ids] of rows)
        this.#indexes[table].add({ pos: pos as number, sum: sum as number, ids: ids as string[] });
      this.#indexes[table].keep();
    }
  }

  get position(): number {
    return this.#position;
  }

  /** JOURNAL-1. A batch with an existing id is skipped; the others are written. */
  apply(batches: BatchMessage[]): OutcomeMessage[] {
    const outcomes = this.#database.transaction(() =>
      batches.map((batch) => this.#existing(batch) ?? this.#write(batch)),
    );
    if (outcomes.some(({ kind }) => kind === "committed")) {
      this.#committed = this.#position;
      this.#count();
    }
    return outcomes;
  }

  /**
   * Final rows after a position, oldest first, each followed by its checksum: what to archive next. At most this many rows and
   * characters, but at least one row.
   */
  unarchived(table: HistoryName, after: number, upTo: number, most: Size): WaitingRows {
    const next = `SELECT ${PACKED[table]} FROM ${table} WHERE pos > ? AND pos <= ? ORDER BY pos LIMIT ?`;
    const rows: Values[] = [];
    let characters = 0;
    let largest = 0;
    for (const packed of this.#database.each(next, after, upTo, most.rows)) {
      const text = packed[0] as string;
      const { values, width, text_sum } = this.#verified(table, packed);
      values.push(checksumOf(text_sum, width));
      rows.push(values);
      characters += text.length;
      largest = Math.max(largest, text.length);
      if (characters >= most.characters) break;
    }
    return { rows, characters, largest };
  }

  /** The size of the rows after a position. */
  measureUnarchived(table: HistoryName, after: number): Size {
    const sizes = `SELECT count(*), coalesce(sum(length(row)), 0) FROM ${table} WHERE pos > ?`;
    const [rows, characters] = this.#database.rows(sizes, after)[0] ?? [];
    return { rows: Number(rows), characters: Number(characters) };
  }

  /** The position of a snapshot row; null if there is none. */
  positionOf(table: SnapshotName, key: string): number | null {
    const [column] = INDEXED[table];
    return (this.#database.value(`SELECT pos FROM ${table} WHERE ${column} = ?`, key) as number | undefined) ?? null;
  }

  /** Matching rows of a table or of `open_actions`. `size` may abort it. */
  read(table: HistoryName | "open_actions", where: Condition, order: string, limit: number, size?: PageSize): Values[] {
    const rows: Values[] = [];
    for (const row of this.each(table, where, order, limit)) {
      size?.add(row);
      rows.push(row);
    }
    return rows;
  }

  /** The same, one at a time. */
  *each(table: HistoryName | "open_actions", where: Condition, order: string, limit = -1): Generator<Values> {
    if (matchesNothing(where)) return;
    const { sql, values } = toSqlite(where);
    const query = `SELECT ${PACKED[table]} FROM ${table} WHERE ${sql} ORDER BY ${order} LIMIT ?`;
    for (const packed of this.#database.each(query, ...values, limit)) yield this.#verified(table, packed).values;
  }

  /** The newest matching rows, at most this many rows and characters, but at least one row. */
  newest(table: HistoryName, where: Condition, most: Size): { rows: Values[]; characters: number } {
    const { sql, values } = toSqlite(where);
    const next = `SELECT ${PACKED[table]} FROM ${table} WHERE ${sql} ORDER BY pos DESC LIMIT ?`;
    const rows: Values[] = [];
    let characters = 0;
    for (const packed of this.#database.each(next, ...values, most.rows)) {
      rows.push(this.#verified(table, packed).values);
      characters += (packed[0] as string).length;
      if (characters >= most.characters) break;
    }
    return { rows, characters };
  }

  /** The rows of a session, a conversation or an id that are still here. */
  only(table: HistoryName, column: string, id: string): Condition {
    return among("pos", this.#indexes[table].of(column, id));
  }

  /** Whether a message with this id has left the journal. */
  wasMessage(message_id: string): boolean {
    return this.#has(HAS_MESSAGE, message_id);
  }

  count(table: HistoryName | "open_actions", where: Condition): number {
    if (matchesNothing(where)) return 0;
    const { sql, values } = toSqlite(where);
    return Number(this.#database.value(`SELECT count(*) FROM ${table} WHERE ${sql}`, ...values));
  }

  /** Rows of a snapshot table by an SQL clause from callers in this folder; values are always bound. */
  snapshots(table: SnapshotName | BookkeepingTable, clause: string, ...values: Value[]): Values[] {
    return this.#unpacked(table, clause, ...values);
  }

  query(sql: string, ...values: Value[]): Values[] {
    return this.#database.rows(sql, ...values);
  }

  sessionsAfter(arrival: number, limit: number): NumberedRow[] {
    return this.#numbered("WHERE arrival > ? ORDER BY arrival LIMIT ?", arrival, limit);
  }

  sessionsOf(session_ids: readonly string[]): NumberedRow[] {
    return this.#numbered("WHERE session_id IN (SELECT value FROM json_each(?))", JSON.stringify(session_ids));
  }

  sessionsAt(arrivals: readonly number[]): NumberedRow[] {
    return this.#numbered("WHERE arrival IN (SELECT value FROM json_each(?))", JSON.stringify(arrivals));
  }

  /** A session's number in order of creation; null if unknown. */
  arrivalOf(session_id: string): number | null {
    const sql = "SELECT rowid FROM packed_agent_state WHERE session_id = ?";
    return (this.#database.value(sql, session_id) as number | undefined) ?? null;
  }

  #numbered(clause: string, ...values: Value[]): NumberedRow[] {
    const rows = this.#database.rows(`SELECT ${PACKED.agent_state}, arrival FROM agent_state ${clause}`, ...values);
    return rows.map((row) => ({
      arrival: Number(row.pop()),
      values: this.#verified("agent_state", row).values,
    }));
  }

  documents(session_id: string): { params: string; context: string | null } {
    const row = this.#database.rows(READ_DOCUMENTS, session_id)[0];
    if (!row) return { params: "{}", context: null };
    const [params, context, sum] = row as [string, string | null, number];
    if (sumOfDocuments(session_id, params, context) !== sum)
      throw corrupt(this.#folder, `the documents of session ${session_id} do not match their checksum`); // JOURNAL-4
    return { params, context };
  }

  /** JOURNAL-3. The state chain of a session's row. Null if no step of it is here: then the documents have its context. */
  chain(session: Values): Chain | null {
    const base = session[SESSION_BASE] as number | null;
    if (base === null) return null;
    const positions = this.#indexes.agent_steps.of("session_id", session[0] as string);
    const stored: StoredState[] = [];
    // Most have one step, and startup reads those of every live session.
    const [only, ...more] = positions;
    const steps =
      only !== undefined && more.length === 0
        ? this.#database.rows(STEP_AT, only)
        : this.#database.each(STEPS_AT, JSON.stringify(positions));
    for (const packed of steps) {
      const { values } = this.#verified("agent_steps", packed);
      if (values[STEP.status] !== "ok") continue;
      if (Number(values[STEP.iteration]) < base) break;
      const [state_kind, base_iteration, state] = [values[STEP.state_kind], values[STEP.base], values[STEP.state]];
      stored.push({ state_kind, base_iteration, state } as StoredState);
    }
    if (stored.at(-1)?.state_kind === "delta")
      throw corrupt(this.#folder, `steps are missing from which the context of session ${session[0]} is rebuilt`);
    return stored.reduceRight<Chain | null>(readState, null);
  }

  archived(): Map<TableName, Archived> {
    return this.#database.archived();
  }

  /** JOURNAL-2. Durable when it returns, with what else the same transaction is to change. */
  markArchived(marks: { name: TableName; version: number; pos: number }[], also?: (rows: RowWriter) => void): void {
    this.#revise("durable", () => {
      also?.(this.#writer);
      for (const { name, version, pos } of marks) {
        const before = this.#database.rows("SELECT version, pos FROM archived WHERE name = ?", name)[0];
        if (before) this.#totals.remove("archived", sumOfValues(name, ...before));
        this.#totals.add("archived", sumOfValues(name, version, pos));
        this.#database.run(RECORD_ARCHIVED, name, version, pos);
      }
    });
    this.#count();
  }

  /** Changes rows that only exist here. Durable when it returns. */
  changeRows<Result>(work: (rows: RowWriter) => Result): Result {
    const result = this.#revise("durable", () => work(this.#writer));
    this.#count();
    return result;
  }

  /** COUNTER-1: a transaction other than a commit. A failed one's revision is reused. */
  #revise<Result>(kind: "durable" | "lazy", work: () => Result): Result {
    const revision = this.#revision + 1;
    const change = (): Result => {
      this.#database.run("UPDATE journal_revision SET revision = ?", revision);
      return work();
    };
    const result = kind === "lazy" ? this.#database.lazyTransaction(change) : this.#database.transaction(change);
    this.#revision = revision;
    return result;
  }

  /** COUNTER-1: once a transaction, and with it all before it, is on disk. */
  #count(): void {
    this.#isUnsynced = false;
    this.#counter.record(this.#place());
  }

  #place(): Counted {
    return { position: this.#committed, revision: this.#revision, totals: this.#totals };
  }

  /** Meanwhile SQLite only appends to its log. */
  async withoutCheckpoints<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#database.checkpointAfter(0);
    try {
      return await work();
    } finally {
      this.#database.checkpointAfter(CHECKPOINT_PAGES);
    }
  }

  /** Without its log. */
  copyTo(path: string): Promise<void> {
    return this.#database.copyTo(path);
  }

  /** Makes removals durable, so that they can be counted, unless a commit did. */
  settle(): void {
    if (!this.#isUnsynced) return;
    this.#revise("durable", () => {});
    this.#count();
  }

  /** Removes the next archived rows of a table, except for JOURNAL-3. Returns how far it got; null at the end. */
  trim(table: HistoryName, after: number, upTo: number, limit: number): number | null {
    const end = this.#indexes[table].nextEnd(after, upTo, limit);
    if (end === null) return null;
    const retained = this.#revise("lazy", () => {
      const entries = this.#indexes[table].entries(after, end);
      const needed = table === "agent_steps" ? this.#neededForContext(entries) : [];
      const but = new Set(needed);
      const leaving = entries.filter(({ pos }) => !but.has(pos));
      if (table === "conversation_messages") this.#keepMessageKeys(leaving);
      this.#database.run(DELETE[table], after, end, JSON.stringify(needed));
      for (const { sum } of leaving) this.#totals.remove(table, sum);
      return but;
    });
    this.#isUnsynced = true;
    this.#indexes[table].remove(after, end, retained);
    return end;
  }

  /** JOURNAL-3. Positions among these of the steps of live sessions since their last full state. */
  #neededForContext(steps: readonly Entry[]): number[] {
    const session_ids = [...new Set(steps.map(({ ids: [session_id] }) => session_id))];
    const bases = new Map(this.#database.rows(LIVE_BASES, JSON.stringify(session_ids)) as [string, number][]);
    const needed: number[] = [];
    // A session's steps are in order: before one that is too old there are none that are needed.
    for (const { pos, ids } of steps.toReversed()) {
      const session_id = ids[0] as string;
      const base = bases.get(session_id);
      if (base === undefined) continue;
      if (Number(this.#database.value(ITERATION_AT, pos)) >= base) needed.push(pos);
      else bases.delete(session_id);
    }
    return needed;
  }

  /** Before messages leave the journal: records their ids and their conversations' last numbers. */
  #keepMessageKeys(messages: readonly Entry[]): void {
    const ids = messages.map((message) => message.ids[0] as string);
    const { changes } = this.#database.run(KEEP_KEYS, JSON.stringify(ids));
    if (Number(changes) === ids.length) for (const id of ids) this.#totals.add("message_keys", sumOfValues(id));
    else this.#recountKeys();
    const last = new Map(messages.map(({ ids: [, conversation_id], pos }) => [conversation_id as string, pos]));
    for (const [conversation_id, pos] of last) {
      const before = this.#database.value(LAST_NUMBER, conversation_id);
      const number = Math.max(Number(before ?? 0), Number(this.#database.value(NUMBER_AT, pos)));
      if (before !== undefined) this.#totals.remove("message_numbers", sumOfValues(conversation_id, before));
      this.#totals.add("message_numbers", sumOfValues(conversation_id, number));
      this.#database.run(KEEP_NUMBER, conversation_id, number);
    }
  }

  /** Some already existed, which only happens if something else wrote to the folder. */
  #recountKeys(): void {
    this.#totals.clear("message_keys");
    for (const [id] of this.#database.each("SELECT message_id FROM message_keys"))
      this.#totals.add("message_keys", sumOfValues(id as string));
  }

  /** Returns the space of removed rows to the file system. */
  shrink(): void {
    this.#database.shrink(SHRINK_PAGES);
  }

  close(): void {
    this.#database.shrink(ALL_PAGES);
    this.#database.close();
    this.#counter.sync();
    this.#counter.close();
  }

  #unpacked(table: JournalTable, clause: string, ...values: Value[]): Values[] {
    const rows = this.#database.rows(`SELECT ${PACKED[table]} FROM ${table} ${clause}`, ...values);
    return rows.map((row) => this.#verified(table, row).values);
  }

  /** JOURNAL-4. */
  #verified(table: JournalTable, packed: Values): VerifiedRow {
    const row = verifiedRow(this.#tables, table, packed);
    if (row) return row;
    throw corrupt(this.#folder, `${nameOfRow(table, packed)} does not match its checksum or its key`);
  }

  #existing(batch: BatchMessage): OutcomeMessage | null {
    for (const { create, packed } of batch.sessions ?? []) {
      const id = packed.named[0] as string;
      if (create && this.#has(HAS_SESSION, id)) return { kind: "exists", table: "agent_state", id };
    }
    for (const { create, packed } of batch.conversations ?? []) {
      const id = packed.named[0] as string;
      if (create && this.#has(HAS_CONVERSATION, id)) return { kind: "exists", table: "conversations", id };
    }
    return this.#existingMessage(batch.conversation_messages ?? []);
  }

  #existingMessage(messages: PackedRow[]): OutcomeMessage | null {
    const ids = new Set<string>();
    for (const { named } of messages) {
      const id = named[0] as string;
      const waits = this.#indexes.conversation_messages.of("message_id", id).length > 0;
      if (ids.has(id) || waits || this.wasMessage(id)) return { kind: "exists", table: "conversation_messages", id };
      ids.add(id);
    }
    return null;
  }

  #write(batch: BatchMessage): OutcomeMessage {
    this.#position = batch.first - 1;
    for (const session of batch.sessions ?? []) this.#writeSession(session);
    for (const packed of batch.agent_steps ?? []) this.#insert("agent_steps", packed);
    for (const packed of batch.conversation_messages ?? []) this.#insertMessage(packed);
    for (const { final, packed } of batch.actions ?? []) {
      if (!final) this.#replace("open_actions", packed);
      else {
        this.#closeAction(packed.named[0] as string);
        this.#insert("queue", packed);
      }
    }
    for (const { packed } of batch.conversations ?? []) this.#replace("conversations", packed);
    for (const name of ["conversation_participants", "session_cursors", "agent_config"] as const)
      for (const packed of batch[name] ?? []) this.#replace(name, packed);
    for (const packed of batch.webhook_deliveries ?? []) this.#addDelivery(packed);
    return { kind: "committed" };
  }

  #writeSession({ create, packed, status, params, context, spawner_id }: SessionMessage): void {
    const id = packed.named[0] as string;
    if (create) {
      this.#replace("agent_state", packed);
      this.changed?.add(id);
      this.#writeDocuments(id, params ?? "{}", context ?? null);
      if (spawner_id) this.#database.run(WRITE_SPAWNED, spawner_id, id);
    } else {
      const pos = this.#nextPosition(packed);
      const sum = sumOfRow(packed.row, pos, 0);
      this.#totals.replace("agent_state", this.#sessionSums.get(id) ?? this.#sumOf("agent_state", id) ?? 0, sum);
      this.#sessionSums.set(id, sum);
      this.#database.run(UPDATE_SESSION, pos, packed.row, sum, id);
      this.dirty.get("agent_state")?.add(id);
      this.changed?.add(id);
      if (status !== undefined) this.#database.run(UPDATE_STATUS, status, id);
      if (context !== undefined) {
        this.#sessionSums.delete(id);
        const before = this.documents(id);
        this.#totals.remove("session_documents", sumOfDocuments(id, before.params, before.context));
        this.#writeDocuments(id, before.params, context);
      }
    }
    this.bytes += (params?.length ?? 0) + (context?.length ?? 0);
  }

  #writeDocuments(id: string, params: string, context: string | null): void {
    const sum = sumOfDocuments(id, params, context);
    this.#totals.add("session_documents", sum);
    this.#database.run(WRITE_DOCUMENTS, id, params, context, sum);
  }

  #insert(table: HistoryName, packed: PackedRow): void {
    const pos = this.#nextPosition(packed);
    const sum = sumOfRow(packed.row, pos, 0);
    this.#addToHistory(table, { pos, ids: packed.named as string[], sum });
    this.#database.run(INSERT[table], pos, packed.row, sum);
  }

  #insertMessage(packed: PackedRow): void {
    const number = this.#nextNumber(packed.named[1] as string);
    const pos = this.#nextPosition(packed);
    const sum = sumOfRow(packed.row, pos, number);
    this.#addToHistory("conversation_messages", { pos, ids: packed.named as string[], sum });
    this.#database.run(INSERT.conversation_messages, pos, number, packed.row, sum);
  }

  #addToHistory(table: HistoryName, entry: Entry): void {
    this.#indexes[table].add(entry);
    this.#totals.add(table, entry.sum);
  }

  #replace(table: SnapshotName | "open_actions", packed: PackedRow): void {
    const key = packed.named[0] as string;
    const before = table === "open_actions" ? this.#open().get(key) : this.#sumOf(table, key);
    const pos = this.#nextPosition(packed);
    const sum = sumOfRow(packed.row, pos, 0);
    if (before === undefined) this.#totals.add(table, sum);
    else this.#totals.replace(table, before, sum);
    this.#database.run(INSERT[table], ...packed.named, pos, packed.row, sum);
    if (table === "open_actions") this.#open().set(key, sum);
    else this.dirty.get(table)?.add(key);
  }

  /** Unless its webhook was removed since the batch was built. */
  #addDelivery(packed: PackedRow): void {
    if (this.#has(HAS_WEBHOOK, packed.named[1] as string)) this.#put("webhook_deliveries", packed);
  }

  #put(table: BookkeepingTable, packed: PackedRow): void {
    this.bytes += packed.row.length;
    const before = this.#sumOf(table, packed.named[0] as string);
    const sum = sumOfRow(packed.row, 0, 0);
    if (before === undefined) this.#totals.add(table, sum);
    else this.#totals.replace(table, before, sum);
    this.#database.run(INSERT[table], ...packed.named, 0, packed.row, sum);
  }

  #remove(table: BookkeepingTable, key: string): void {
    const sum = this.#sumOf(table, key);
    if (sum === undefined) return;
    this.#totals.remove(table, sum);
    this.#database.run(REMOVE[table], key);
  }

  #closeAction(action_id: string): void {
    const sum = this.#open().get(action_id);
    if (sum === undefined) return;
    this.#totals.remove("open_actions", sum);
    this.#open().delete(action_id);
    this.#database.run(REMOVE.open_actions, action_id);
  }

  #open(): Map<string, number> {
    this.#openSums ??= new Map(
      this.#database.rows("SELECT action_id, sum FROM packed_open_actions") as [string, number][],
    );
    return this.#openSums;
  }

  #sumOf(table: SnapshotName | BookkeepingTable, key: string): number | undefined {
    return this.#database.value(SUM_OF[table], key) as number | undefined;
  }

  /** The position of the next row to write. */
  #nextPosition({ row }: PackedRow): number {
    this.bytes += row.length;
    return ++this.#position;
  }

  /** Dense and ascending. Cached in memory; on disk it follows from the rows here and the trimmed ones. */
  #nextNumber(conversation_id: string): number {
    const last = this.#numbers.get(conversation_id) ?? this.#lastNumber(conversation_id);
    this.#numbers.set(conversation_id, last + 1);
    return last + 1;
  }

  #lastNumber(conversation_id: string): number {
    const pos = this.#indexes.conversation_messages.of("conversation_id", conversation_id).at(-1);
    const waiting = pos === undefined ? [] : this.#unpacked("conversation_messages", "WHERE pos = ?", pos);
    const archived = this.#database.value(LAST_NUMBER, conversation_id);
    return Math.max(Number(archived ?? 0), ...waiting.map((values) => Number(values[MESSAGE_NUMBER])));
  }

  #has(sql: string, id: string): boolean {
    return this.#database.value(sql, id) !== undefined;
  }
}

const HAS_MESSAGE = "SELECT 1 FROM message_keys WHERE message_id = ?";
const HAS_SESSION = "SELECT 1 FROM packed_agent_state WHERE session_id = ?";
const HAS_WEBHOOK = "SELECT 1 FROM packed_webhooks WHERE webhook_id = ?";
const HAS_CONVERSATION = "SELECT 1 FROM packed_conversations WHERE conversation_id = ?";
const WRITE_SPAWNED = "INSERT OR IGNORE INTO spawned_sessions (spawner_id, session_id) VALUES (?, ?)";
const READ_DOCUMENTS = "SELECT params, context, sum FROM session_documents WHERE session_id = ?";
const WRITE_DOCUMENTS = `INSERT INTO session_documents (session_id, params, context, sum) VALUES (?, ?, ?, ?)
  ON CONFLICT (session_id) DO UPDATE SET context = excluded.context, sum = excluded.sum`;

/**
 * COUNTER-1, COUNTER-2: a journal that ends before the recorded point has lost transactions; one that ends there has the
 * recorded totals.
 */
function openCounter(folder: string, actual: Counted): CommitCounter {
  const counted = CommitCounter.read(counterPath(folder));
  const problem = counted && counterProblem(folder, counted, actual);
  if (problem) throw problem;
  const counter = new CommitCounter(counterPath(folder));
  counter.record(actual);
  return counter;
}

const SESSION_BASE = columnIndex("agent_state", "base_iteration");
const MESSAGE_NUMBER = columnIndex("conversation_messages", "number");
const STEP = {
  status: columnIndex("agent_steps", "status"),
  iteration: columnIndex("agent_steps", "iteration"),
  state_kind: columnIndex("agent_steps", "state_kind"),
  base: columnIndex("agent_steps", "base_iteration"),
  state: columnIndex("agent_steps", "state"),
};

const SHRINK_PAGES = 2000;
const ALL_PAGES = 2 ** 31 - 1;
