import type { DatabaseSync } from "node:sqlite";
import { type Chain, readState, type StoredState } from "../state-chain.ts";
import { checksumOf } from "./checked-rows.ts";
import { JournalDatabase } from "./journal-database.ts";
import {
  type Archived,
  CHAIN,
  CLOSE_ACTION,
  DELETE,
  INSERT,
  type JournalTable,
  KEEP_KEYS,
  KEEP_NUMBERS,
  NEEDED_FOR_CONTEXT,
  PACKED,
  RECORD_ARCHIVED,
  schemaOf,
  UPDATE_SESSION,
  UPDATE_STATUS,
} from "./journal-sql.ts";
import { NAMED, type PackedRow, unpack, unpackWide } from "./packed-rows.ts";
import type { PageSize } from "./page-size.ts";
import { positionsOfAll } from "./positions.ts";
import {
  HISTORY_NAMES,
  type HistoryName,
  SNAPSHOT_NAMES,
  type SnapshotName,
  TABLES,
  type TableName,
  type Value,
  type Values,
} from "./tables.ts";
import { among, toSqlite, type Where } from "./where.ts";
import type { Size, WireBatch, WireOutcome, WireSession } from "./wire.ts";

/** Rows to be moved, the characters of all of them, and of the largest. */
export type WaitingRows = { rows: Values[]; characters: number; largest: number };

/**
 * The journal: where a commit becomes durable, and where everything that may still change lives for good.
 *
 * J1  A group of batches is one SQLite transaction (WAL, synchronous = FULL): on disk when `apply` returns.
 * J2  Every row gets the next position. Rows of history are moved to LanceDB in that order and removed here only after
 *     `markArchived` recorded durably that LanceDB has them on disk.
 * J3  Of a live session the steps since its last whole state stay, so that its context is rebuilt without LanceDB.
 */
export class Journal {
  /** Bytes of row text written since open. */
  bytes = 0;
  readonly #database: JournalDatabase;
  /** The last message's number of each conversation that was written to. */
  readonly #numbers = new Map<string, number>();
  readonly #positions = positionsOfAll();
  #position: number;
  /** Snapshots that changed since they were copied into LanceDB. */
  readonly dirty = new Map<SnapshotName, Set<string>>(SNAPSHOT_NAMES.map((name) => [name, new Set()]));

  constructor(folder: string, database: DatabaseSync) {
    const waiting = Object.values(this.#positions);
    this.#database = new JournalDatabase(folder, database, {
      onKept: () => waiting.forEach((positions) => positions.keep()),
      onUndone: () => {
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
  }

  #loadPositions(): void {
    for (const table of HISTORY_NAMES) {
      const rows = this.#database.each(`SELECT pos, ${NAMED[table].join(", ")} FROM ${table} ORDER BY pos`);
      for (const [pos, ...ids] of rows) this.#positions[table].add({ pos: pos as number, ids: ids as string[] });
      this.#positions[table].keep();
    }
  }

  get position(): number {
    return this.#position;
  }

  /** J1. A batch that meets an id that is there already is left out; the others are written. */
  apply(batches: WireBatch[]): WireOutcome[] {
    return this.#database.transaction(() => batches.map((batch) => this.#existing(batch) ?? this.#write(batch)));
  }

  /**
   * Final rows after a position, oldest first, and the checksum after each one's values: what is to be moved next. No more
   * than that many rows and characters, but at least one row.
   */
  unmoved(table: HistoryName, after: number, upTo: number, most: Size): WaitingRows {
    const next = `SELECT ${PACKED[table]} FROM ${table} WHERE pos > ? AND pos <= ? ORDER BY pos LIMIT ?`;
    const rows: Values[] = [];
    let characters = 0;
    let largest = 0;
    for (const packed of this.#database.each(next, after, upTo, most.rows)) {
      const text = packed[0] as string;
      const { values, width } = unpackWide(table, packed);
      rows.push([...values, checksumOf(text, width)]);
      characters += text.length;
      largest = Math.max(largest, text.length);
      if (characters >= most.characters) break;
    }
    return { rows, characters, largest };
  }

  /** Of the rows after a position. */
  measureUnmoved(table: HistoryName, after: number): Size {
    const sizes = `SELECT count(*), coalesce(sum(length(row)), 0) FROM ${table} WHERE pos > ?`;
    const [rows, characters] = this.#database.rows(sizes, after)[0] ?? [];
    return { rows: Number(rows), characters: Number(characters) };
  }

  /** The position of a row that is kept here for good; null where there is none of that key. */
  positionOf(table: SnapshotName, key: string): number | null {
    const [column] = NAMED[table];
    return (this.#database.value(`SELECT pos FROM ${table} WHERE ${column} = ?`, key) as number | undefined) ?? null;
  }

  /** Rows that match, from a table or from `open_actions`. `size` may end it. */
  read(table: HistoryName | "open_actions", where: Where, order: string, limit: number, size?: PageSize): Values[] {
    const rows: Values[] = [];
    for (const row of this.each(table, where, order, limit)) {
      size?.add(row);
      rows.push(row);
    }
    return rows;
  }

  /** The same, one at a time. */
  *each(table: HistoryName | "open_actions", where: Where, order: string, limit = -1): Generator<Values> {
    const { sql, values } = toSqlite(where);
    const query = `SELECT ${PACKED[table]} FROM ${table} WHERE ${sql} ORDER BY ${order} LIMIT ?`;
    for (const packed of this.#database.each(query, ...values, limit)) yield unpack(schemaOf(table), packed);
  }

  /** The newest rows that match, no more than that many rows and characters, but at least one row. */
  newest(table: HistoryName, where: Where, most: Size): { rows: Values[]; characters: number } {
    const { sql, values } = toSqlite(where);
    const next = `SELECT ${PACKED[table]} FROM ${table} WHERE ${sql} ORDER BY pos DESC LIMIT ?`;
    const rows: Values[] = [];
    let characters = 0;
    for (const packed of this.#database.each(next, ...values, most.rows)) {
      rows.push(unpack(table, packed));
      characters += (packed[0] as string).length;
      if (characters >= most.characters) break;
    }
    return { rows, characters };
  }

  /** The rows of a session, a conversation or an id that are still here. */
  only(table: HistoryName, column: string, id: string): Where {
    return among("pos", this.#positions[table].of(column, id));
  }

  /** Whether a message of that id has left the journal. */
  wasMessage(message_id: string): boolean {
    return this.#has("message_keys", "message_id", message_id);
  }

  count(table: HistoryName | "open_actions", where: Where): number {
    const { sql, values } = toSqlite(where);
    return Number(this.#database.value(`SELECT count(*) FROM ${table} WHERE ${sql}`, ...values));
  }

  /** Rows of a snapshot table by SQL that the callers in this folder write; values are always bound. */
  snapshots(table: SnapshotName, clause: string, ...values: Value[]): Values[] {
    return this.#unpacked(table, clause, ...values);
  }

  query(sql: string, ...values: Value[]): Values[] {
    return this.#database.rows(sql, ...values);
  }

  documents(session_id: string): { params: string; context: string | null } {
    const row = this.#database.rows(
      "SELECT params, context FROM session_documents WHERE session_id = ?",
      session_id,
    )[0];
    return { params: (row?.[0] as string) ?? "{}", context: (row?.[1] as string) ?? null };
  }

  /** J3. Null where no step of the session is at hand: then the documents hold its context. */
  chain(session_id: string): Chain | null {
    const positions = this.#positions.agent_steps.of("session_id", session_id);
    const rows = this.#database.rows(CHAIN, JSON.stringify(positions), session_id);
    let chain: Chain | null = null;
    for (const [state_kind, base_iteration, state] of rows)
      chain = readState(chain, { state_kind, base_iteration, state } as StoredState);
    return chain;
  }

  archived(): Map<TableName, Archived> {
    return this.#database.archived();
  }

  /** J2. Durable when it returns. */
  markArchived(marks: { name: TableName; version: number; pos: number }[]): void {
    this.#database.transaction(() => {
      for (const { name, version, pos } of marks) this.#database.run(RECORD_ARCHIVED, name, version, pos);
    });
  }

  /** Looks at the next moved rows of a table and removes them, but for J3. Answers how far it got; null at the end. */
  trim(table: HistoryName, after: number, upTo: number, limit: number): number | null {
    const end = this.#positions[table].nextEnd(after, upTo, limit);
    if (end === null) return null;
    const kept = this.#database.lazyTransaction(() => {
      if (table === "conversation_messages") {
        this.#database.run(KEEP_NUMBERS, after, end);
        this.#database.run(KEEP_KEYS, after, end);
      }
      const needed =
        table === "agent_steps" ? this.#database.rows(NEEDED_FOR_CONTEXT, after, end).map(([pos]) => Number(pos)) : [];
      this.#database.run(DELETE[table], after, end, JSON.stringify(needed));
      return needed;
    });
    this.#positions[table].remove(after, end, new Set(kept));
    return end;
  }

  /** Gives the space of removed rows back to the file system. */
  shrink(): void {
    this.#database.shrink(SHRINK_PAGES);
  }

  close(): void {
    this.#database.shrink(ALL_PAGES);
    this.#database.close();
  }

  #unpacked(table: JournalTable, clause: string, ...values: Value[]): Values[] {
    const rows = this.#database.rows(`SELECT ${PACKED[table]} FROM ${table} ${clause}`, ...values);
    return rows.map((row) => unpack(schemaOf(table), row));
  }

  #existing(batch: WireBatch): WireOutcome | null {
    for (const { create, packed } of batch.sessions ?? []) {
      const id = packed.named[0] as string;
      if (create && this.#has("agent_state", "session_id", id)) return { kind: "exists", table: "agent_state", id };
    }
    for (const { create, packed } of batch.conversations ?? []) {
      const id = packed.named[0] as string;
      if (create && this.#has("conversations", "conversation_id", id))
        return { kind: "exists", table: "conversations", id };
    }
    return this.#existingMessage(batch.conversation_messages ?? []);
  }

  #existingMessage(messages: PackedRow[]): WireOutcome | null {
    const ids = new Set<string>();
    for (const { named } of messages) {
      const id = named[0] as string;
      const waits = this.#positions.conversation_messages.of("message_id", id).length > 0;
      if (ids.has(id) || waits || this.wasMessage(id)) return { kind: "exists", table: "conversation_messages", id };
      ids.add(id);
    }
    return null;
  }

  #write(batch: WireBatch): WireOutcome {
    this.#position = batch.first - 1;
    for (const session of batch.sessions ?? []) this.#writeSession(session);
    for (const packed of batch.agent_steps ?? []) this.#insert("agent_steps", packed);
    for (const packed of batch.conversation_messages ?? [])
      this.#insert("conversation_messages", packed, this.#nextNumber(packed.named[1] as string));
    for (const { final, packed } of batch.actions ?? []) {
      if (!final) this.#replace("open_actions", packed);
      else {
        this.#database.run(CLOSE_ACTION, packed.named[0] as string);
        this.#insert("queue", packed);
      }
    }
    for (const { packed } of batch.conversations ?? []) this.#replace("conversations", packed);
    for (const name of ["conversation_participants", "session_cursors", "agent_config"] as const)
      for (const packed of batch[name] ?? []) this.#replace(name, packed);
    return { kind: "committed" };
  }

  #writeSession({ create, packed, status_changed, params, context }: WireSession): void {
    const [id, , status] = packed.named as [string, string, string];
    if (create) {
      this.#replace("agent_state", packed);
      const documents = "INSERT INTO session_documents (session_id, params, context) VALUES (?, ?, ?)";
      this.#database.run(documents, id, params ?? "{}", context ?? null);
    } else {
      this.#database.run(UPDATE_SESSION, this.#place(packed), packed.row, id);
      this.dirty.get("agent_state")?.add(id);
      if (status_changed) this.#database.run(UPDATE_STATUS, status, id);
      if (context !== undefined)
        this.#database.run("UPDATE session_documents SET context = ? WHERE session_id = ?", context, id);
    }
    this.bytes += (params?.length ?? 0) + (context?.length ?? 0);
  }

  #insert(table: HistoryName, packed: PackedRow, ...given: number[]): void {
    const pos = this.#place(packed);
    this.#positions[table].add({ pos, ids: packed.named });
    this.#database.run(INSERT[table], pos, ...given, packed.row);
  }

  #replace(table: SnapshotName | "open_actions", packed: PackedRow): void {
    this.#database.run(INSERT[table], ...packed.named, this.#place(packed), packed.row);
    this.dirty.get(table as SnapshotName)?.add(packed.named[0] as string);
  }

  /** The position of a row that is about to be written. */
  #place({ row }: PackedRow): number {
    this.bytes += row.length;
    return ++this.#position;
  }

  /** Dense and ascending. Kept in memory; on disk it is what the rows here and the ones trimmed from here say. */
  #nextNumber(conversation_id: string): number {
    const last =
      this.#numbers.get(conversation_id) ??
      Number(
        this.#database.value(
          `SELECT max(coalesce((SELECT last FROM message_numbers WHERE conversation_id = ?), 0),
                      coalesce((SELECT number FROM conversation_messages WHERE pos = ?), 0))`,
          conversation_id,
          this.#positions.conversation_messages.of("conversation_id", conversation_id).at(-1) ?? 0,
        ),
      );
    this.#numbers.set(conversation_id, last + 1);
    return last + 1;
  }

  #has(table: string, column: string, id: string): boolean {
    return this.#database.value(`SELECT 1 FROM ${table} WHERE ${column} = ?`, id) !== undefined;
  }
}

const SHRINK_PAGES = 2000;
const ALL_PAGES = 2 ** 31 - 1;
