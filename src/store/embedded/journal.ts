import type { DatabaseSync } from "node:sqlite";
import type { WebhookTable } from "../schema.ts";
import { type Chain, readState, type StoredState } from "../state-delta.ts";
import { CommitCounter, type Counted, counterProblem, JournalTotals } from "./commit-counter.ts";
import { among, type Condition, toSqlite } from "./condition.ts";
import { corrupt, counterPath } from "./folder-errors.ts";
import {
  type Archived,
  DELETE,
  INSERT,
  JournalDatabase,
  type JournalTable,
  KEEP_KEYS,
  KEEP_NUMBER,
  LAST_NUMBER,
  NEEDED_FOR_CONTEXT,
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
import { type Entry, positionsOfAll } from "./journal-index.ts";
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

/** A session's row and where it stands among all in the order they were made. */
export type NumberedRow = { arrival: number; values: Values };

/** Rows to be moved, the characters of all of them, and of the largest. */
export type WaitingRows = { rows: Values[]; characters: number; largest: number };

export type WebhookRowWriter = {
  /** Adds a row or replaces the one of its key. */
  put: (table: WebhookTable, packed: PackedRow) => void;
  remove: (table: WebhookTable, key: string) => void;
};

/**
 * The journal: where a commit becomes durable, and where everything that may still change lives for good.
 *
 * JOURNAL-1  A group of batches is one SQLite transaction (WAL, synchronous = FULL): on disk when `apply` returns.
 * JOURNAL-2  Every row gets the next position. Rows of history are moved to LanceDB in that order and removed here only after
 *     `markArchived` recorded durably that LanceDB has them on disk.
 * JOURNAL-3  Of a live session the steps since its last whole state stay, so that its context is rebuilt without LanceDB.
 * JOURNAL-4  A row is compared with its checksum whenever it is read whole: at start, by a reader and before it is moved.
 */
export class Journal {
  /** Bytes of row text written since open. */
  bytes = 0;
  readonly #folder: string;
  readonly #tables: EmbeddedTables;
  readonly #database: JournalDatabase;
  readonly #totals: JournalTotals;
  readonly #counter: CommitCounter;
  /** The checksums of live sessions' rows that were written, which every step replaces. */
  readonly #sessionSums = new Map<string, number>();
  /** The checksums of all open actions; null until they are read. */
  #openSums: Map<string, number> | null = null;
  /** The last message's number of each conversation that was written to. */
  readonly #numbers = new Map<string, number>();
  readonly #positions = positionsOfAll();
  #position: number;
  /** The position of the last commit; places after it may have been given to one that came to nothing. */
  #committed: number;
  /** How often anything but a commit changed rows. */
  #revision: number;
  /** Whether rows were removed that no sync took to disk yet. */
  #isUnsynced = false;
  /** Sessions that were written since they were last taken from here; null where nobody does (`session-lists.ts`). */
  changed: Set<string> | null = null;
  /** Snapshots that changed since they were copied into LanceDB. */
  readonly dirty = new Map<SnapshotName, Set<string>>(SNAPSHOT_NAMES.map((name) => [name, new Set()]));

  /** `totals` are those of what it holds. */
  constructor(folder: string, database: DatabaseSync, tables: EmbeddedTables, totals: JournalTotals) {
    this.#tables = tables;
    this.#folder = folder;
    this.#totals = totals;
    const waiting = Object.values(this.#positions);
    this.#database = new JournalDatabase(folder, database, {
      onKept: () => {
        this.#totals.keep();
        waiting.forEach((positions) => positions.keep());
      },
      onUndone: () => {
        this.#totals.undo();
        this.#sessionSums.clear();
        this.#openSums = null;
        // A group that was undone gave numbers away that are not taken.
        this.#numbers.clear();
        waiting.forEach((positions) => positions.undo());
      },
    });
    this.#loadPositions();
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

  #loadPositions(): void {
    for (const table of HISTORY_NAMES) {
      const rows = this.#database.each(`SELECT pos, sum, ${INDEXED[table].join(", ")} FROM ${table} ORDER BY pos`);
      for (const [pos, sum, ...ids] of rows)
        this.#positions[table].add({ pos: pos as number, sum: sum as number, ids: ids as string[] });
      this.#positions[table].keep();
    }
  }

  get position(): number {
    return this.#position;
  }

  /** JOURNAL-1. A batch that meets an id that is there already is left out; the others are written. */
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
   * Final rows after a position, oldest first, and the checksum after each one's values: what is to be moved next. No more
   * than that many rows and characters, but at least one row.
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

  /** Of the rows after a position. */
  measureUnarchived(table: HistoryName, after: number): Size {
    const sizes = `SELECT count(*), coalesce(sum(length(row)), 0) FROM ${table} WHERE pos > ?`;
    const [rows, characters] = this.#database.rows(sizes, after)[0] ?? [];
    return { rows: Number(rows), characters: Number(characters) };
  }

  /** The position of a row that is kept here for good; null where there is none of that key. */
  positionOf(table: SnapshotName, key: string): number | null {
    const [column] = INDEXED[table];
    return (this.#database.value(`SELECT pos FROM ${table} WHERE ${column} = ?`, key) as number | undefined) ?? null;
  }

  /** Rows that match, from a table or from `open_actions`. `size` may end it. */
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
    const { sql, values } = toSqlite(where);
    const query = `SELECT ${PACKED[table]} FROM ${table} WHERE ${sql} ORDER BY ${order} LIMIT ?`;
    for (const packed of this.#database.each(query, ...values, limit)) yield this.#verified(table, packed).values;
  }

  /** The newest rows that match, no more than that many rows and characters, but at least one row. */
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
    return among("pos", this.#positions[table].of(column, id));
  }

  /** Whether a message of that id has left the journal. */
  wasMessage(message_id: string): boolean {
    return this.#has(HAS_MESSAGE, message_id);
  }

  count(table: HistoryName | "open_actions", where: Condition): number {
    const { sql, values } = toSqlite(where);
    return Number(this.#database.value(`SELECT count(*) FROM ${table} WHERE ${sql}`, ...values));
  }

  /** Rows of a snapshot table by SQL that the callers in this folder write; values are always bound. */
  snapshots(table: SnapshotName | WebhookTable, clause: string, ...values: Value[]): Values[] {
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

  /** Where a session stands among all; null where it is unknown. */
  arrivalOf(session_id: string): number | null {
    const sql = "SELECT rowid FROM packed_agent_state WHERE session_id = ?";
    return (this.#database.value(sql, session_id) as number | undefined) ?? null;
  }

  sessionCount(agent_id: string): number {
    return Number(this.#database.value("SELECT count(*) FROM packed_agent_state WHERE agent_id = ?", agent_id));
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

  /** JOURNAL-3. Of a session by its row. Null where no step of it is at hand: then the documents hold its context. */
  chain(session: Values): Chain | null {
    const base = session[SESSION_BASE] as number | null;
    if (base === null) return null;
    const positions = this.#positions.agent_steps.of("session_id", session[0] as string);
    const stored: StoredState[] = [];
    // Most have one, and a start reads those of every live session.
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

  /** JOURNAL-2. Durable when it returns. */
  markArchived(marks: { name: TableName; version: number; pos: number }[]): void {
    this.#revise("durable", () => {
      for (const { name, version, pos } of marks) {
        const before = this.#database.rows("SELECT version, pos FROM archived WHERE name = ?", name)[0];
        if (before) this.#totals.remove("archived", sumOfValues(name, ...before));
        this.#totals.add("archived", sumOfValues(name, version, pos));
        this.#database.run(RECORD_ARCHIVED, name, version, pos);
      }
    });
    this.#count();
  }

  /** Changes rows that are only here. On disk when it returns. */
  changeWebhooks<Result>(work: (rows: WebhookRowWriter) => Result): Result {
    const rows: WebhookRowWriter = {
      put: (table, packed) => this.#put(table, packed),
      remove: (table, key) => this.#remove(table, key),
    };
    const result = this.#revise("durable", () => work(rows));
    this.#count();
    return result;
  }

  /** COUNTER-1: a transaction that is no commit. A revision that came to nothing is given again. */
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

  /** Takes what was removed to disk, so that it can be counted, unless a commit did. */
  settle(): void {
    if (!this.#isUnsynced) return;
    this.#revise("durable", () => {});
    this.#count();
  }

  /** Looks at the next moved rows of a table and removes them, but for JOURNAL-3. Answers how far it got; null at the end. */
  trim(table: HistoryName, after: number, upTo: number, limit: number): number | null {
    const end = this.#positions[table].nextEnd(after, upTo, limit);
    if (end === null) return null;
    const kept = this.#revise("lazy", () => {
      const needed =
        table === "agent_steps" ? this.#database.rows(NEEDED_FOR_CONTEXT, after, end).map(([pos]) => Number(pos)) : [];
      const but = new Set(needed);
      const leaving = this.#positions[table].entries(after, end).filter(({ pos }) => !but.has(pos));
      if (table === "conversation_messages") this.#keepMessageKeys(leaving);
      this.#database.run(DELETE[table], after, end, JSON.stringify(needed));
      for (const { sum } of leaving) this.#totals.remove(table, sum);
      return but;
    });
    this.#isUnsynced = true;
    this.#positions[table].remove(after, end, kept);
    return end;
  }

  /** Before messages leave the journal: their ids, and how far their conversations were numbered. */
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

  /** Some were there already, which only a folder can have that something else wrote to. */
  #recountKeys(): void {
    this.#totals.clear("message_keys");
    for (const [id] of this.#database.each("SELECT message_id FROM message_keys"))
      this.#totals.add("message_keys", sumOfValues(id as string));
  }

  /** Gives the space of removed rows back to the file system. */
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
      const waits = this.#positions.conversation_messages.of("message_id", id).length > 0;
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
    this.#positions[table].add(entry);
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

  /** Unless its webhook was removed since the batch was made. */
  #addDelivery(packed: PackedRow): void {
    if (this.#has(HAS_WEBHOOK, packed.named[1] as string)) this.#put("webhook_deliveries", packed);
  }

  #put(table: WebhookTable, packed: PackedRow): void {
    this.bytes += packed.row.length;
    const before = this.#sumOf(table, packed.named[0] as string);
    const sum = sumOfRow(packed.row, 0, 0);
    if (before === undefined) this.#totals.add(table, sum);
    else this.#totals.replace(table, before, sum);
    this.#database.run(INSERT[table], ...packed.named, 0, packed.row, sum);
  }

  #remove(table: WebhookTable, key: string): void {
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

  #sumOf(table: SnapshotName | WebhookTable, key: string): number | undefined {
    return this.#database.value(SUM_OF[table], key) as number | undefined;
  }

  /** The position of a row that is about to be written. */
  #nextPosition({ row }: PackedRow): number {
    this.bytes += row.length;
    return ++this.#position;
  }

  /** Dense and ascending. Kept in memory; on disk it is what the rows here and the ones trimmed from here say. */
  #nextNumber(conversation_id: string): number {
    const last = this.#numbers.get(conversation_id) ?? this.#lastNumber(conversation_id);
    this.#numbers.set(conversation_id, last + 1);
    return last + 1;
  }

  #lastNumber(conversation_id: string): number {
    const pos = this.#positions.conversation_messages.of("conversation_id", conversation_id).at(-1);
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

/** COUNTER-1, COUNTER-2: a journal that ends before what was counted lost transactions, one that ends there has the rows that were counted. */
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
