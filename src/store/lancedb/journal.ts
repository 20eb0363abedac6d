import { type Chain, readState, type StoredState } from "../state-chain.ts";
import { JournalDatabase } from "./journal-database.ts";
import {
  ACTION_ID,
  COLUMNS,
  INSERT,
  type JournalTable,
  KEEP_NUMBERS,
  MESSAGE,
  NEEDED_FOR_CONTEXT,
  POSITION,
} from "./journal-sql.ts";
import {
  type HistoryName,
  SNAPSHOT_NAMES,
  type SnapshotName,
  TABLES,
  type TableName,
  type Value,
  type Values,
} from "./tables.ts";
import { toSqlite, type Where } from "./where.ts";
import type { WireBatch, WireOutcome, WireSession } from "./wire.ts";

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
  #position: number;
  /** Snapshots that changed since they were copied into LanceDB. */
  readonly dirty = new Map<SnapshotName, Set<string>>(SNAPSHOT_NAMES.map((name) => [name, new Set()]));

  constructor(folder: string) {
    // A group that was undone gave numbers away that are not taken.
    this.#database = new JournalDatabase(folder, () => this.#numbers.clear());
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

  get position(): number {
    return this.#position;
  }

  /** J1. A batch that meets an id that is there already is left out; the others are written. */
  apply(batches: WireBatch[]): WireOutcome[] {
    return this.#database.transaction(() => batches.map((batch) => this.#existing(batch) ?? this.#write(batch)));
  }

  /** Final rows after a position, oldest first: what is to be moved next. */
  unmoved(table: HistoryName, after: number, upTo: number, limit: number): Values[] {
    return this.#database.rows(
      `SELECT ${COLUMNS[table]} FROM ${table} WHERE pos > ? AND pos <= ? ORDER BY pos LIMIT ?`,
      after,
      upTo,
      limit,
    );
  }

  countUnmoved(table: HistoryName, after: number): number {
    return Number(this.#database.value(`SELECT count(*) FROM ${table} WHERE pos > ?`, after));
  }

  /** Rows that match, from a table or from `open_actions`. */
  read(table: HistoryName | "open_actions", where: Where, order: string, limit: number, offset = 0): Values[] {
    const { sql, values } = toSqlite(where);
    return this.#database.rows(
      `SELECT ${COLUMNS[table]} FROM ${table} WHERE ${sql} ORDER BY ${order} LIMIT ? OFFSET ?`,
      ...values,
      limit,
      offset,
    );
  }

  count(table: HistoryName | "open_actions", where: Where): number {
    const { sql, values } = toSqlite(where);
    return Number(this.#database.value(`SELECT count(*) FROM ${table} WHERE ${sql}`, ...values));
  }

  /** Rows of a snapshot table by SQL that the callers in this folder write; values are always bound. */
  snapshots(table: SnapshotName, clause: string, ...values: Value[]): Values[] {
    return this.#database.rows(`SELECT ${COLUMNS[table]} FROM ${table} ${clause}`, ...values);
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
    const rows = this.#database.rows(
      `SELECT state_kind, base_iteration, state FROM agent_steps WHERE session_id = ?1 AND status = 'ok'
       AND iteration >= (SELECT base_iteration FROM agent_state WHERE session_id = ?1) ORDER BY iteration`,
      session_id,
    );
    let chain: Chain | null = null;
    for (const [state_kind, base_iteration, state] of rows)
      chain = readState(chain, { state_kind, base_iteration, state } as StoredState);
    return chain;
  }

  archived(): Map<TableName, { version: number; pos: number }> {
    const rows = this.#database.rows("SELECT name, version, pos FROM archived");
    return new Map(
      rows.map(([name, version, pos]) => [name as TableName, { version: Number(version), pos: Number(pos) }]),
    );
  }

  /** J2. Durable when it returns. */
  markArchived(marks: { name: TableName; version: number; pos: number }[]): void {
    this.#database.transaction(() => {
      for (const { name, version, pos } of marks)
        this.#database.run("INSERT OR REPLACE INTO archived (name, version, pos) VALUES (?, ?, ?)", name, version, pos);
    });
  }

  /** Looks at the next moved rows of a table and removes them, but for J3. Answers how far it got; null at the end. */
  trim(table: HistoryName, after: number, upTo: number, limit: number): number | null {
    const end = this.#database.value(
      `SELECT max(pos) FROM (SELECT pos FROM ${table} WHERE pos > ? AND pos <= ? ORDER BY pos LIMIT ?)`,
      after,
      upTo,
      limit,
    );
    if (end === null || end === undefined) return null;
    const keep = table === "agent_steps" ? `AND NOT EXISTS (${NEEDED_FOR_CONTEXT})` : "";
    this.#database.transaction(() => {
      if (table === "conversation_messages") this.#database.run(KEEP_NUMBERS, after, end);
      this.#database.run(`DELETE FROM ${table} WHERE pos > ? AND pos <= ? ${keep}`, after, end);
    });
    return Number(end);
  }

  /** Gives the space of removed rows back to the file system. */
  shrink(): void {
    this.#database.shrink(SHRINK_PAGES);
  }

  close(): void {
    this.#database.shrink(ALL_PAGES);
    this.#database.close();
  }

  #existing(batch: WireBatch): WireOutcome | null {
    for (const { create, values } of batch.sessions) {
      const id = values[0] as string;
      if (create && this.#has("agent_state", "session_id", id)) return { kind: "exists", table: "agent_state", id };
    }
    for (const { create, values } of batch.conversations) {
      const id = values[0] as string;
      if (create && this.#has("conversations", "conversation_id", id))
        return { kind: "exists", table: "conversations", id };
    }
    return this.#existingMessage(batch.conversation_messages);
  }

  /** Takes the messages' ids for good; where one is taken already, none of them. */
  #existingMessage(messages: Values[]): WireOutcome | null {
    for (const [index, values] of messages.entries()) {
      const id = values[MESSAGE.message_id] as string;
      if (this.#database.run("INSERT OR IGNORE INTO message_keys (message_id) VALUES (?)", id).changes !== 0) continue;
      for (const taken of messages.slice(0, index))
        this.#database.run("DELETE FROM message_keys WHERE message_id = ?", taken[MESSAGE.message_id] as string);
      return { kind: "exists", table: "conversation_messages", id };
    }
    return null;
  }

  #write(batch: WireBatch): WireOutcome {
    for (const session of batch.sessions) this.#writeSession(session);
    for (const values of batch.agent_steps) this.#insert("agent_steps", values);
    for (const values of batch.conversation_messages) {
      values[MESSAGE.number] = this.#nextNumber(values[MESSAGE.conversation_id] as string);
      this.#insert("conversation_messages", values);
    }
    for (const { final, values } of batch.actions) {
      if (!final) this.#insert("open_actions", values);
      else {
        this.#database.run("DELETE FROM open_actions WHERE action_id = ?", values[ACTION_ID] as string);
        this.#insert("queue", values);
      }
    }
    for (const { values } of batch.conversations) this.#insert("conversations", values);
    for (const name of ["conversation_participants", "session_cursors", "agent_config"] as const)
      for (const values of batch[name]) this.#insert(name, values);
    return { kind: "committed" };
  }

  #writeSession({ create, values, params, context }: WireSession): void {
    this.#insert("agent_state", values);
    const id = values[0] as string;
    if (create)
      this.#database.run(
        "INSERT INTO session_documents (session_id, params, context) VALUES (?, ?, ?)",
        id,
        params ?? "{}",
        context ?? null,
      );
    else if (context !== undefined)
      this.#database.run("UPDATE session_documents SET context = ? WHERE session_id = ?", context, id);
    this.bytes += (params?.length ?? 0) + (context?.length ?? 0);
  }

  #insert(table: JournalTable, values: Values): void {
    values[POSITION[table]] = ++this.#position;
    for (const value of values) this.bytes += typeof value === "string" ? value.length : 8;
    this.#database.run(INSERT[table], ...values);
    this.dirty.get(table as SnapshotName)?.add(values[0] as string);
  }

  /** Dense and ascending. Kept in memory; on disk it is what the rows here and the ones trimmed from here say. */
  #nextNumber(conversation_id: string): number {
    const last =
      this.#numbers.get(conversation_id) ??
      Number(
        this.#database.value(
          `SELECT max(coalesce((SELECT last FROM message_numbers WHERE conversation_id = ?1), 0),
                      coalesce((SELECT max(number) FROM conversation_messages WHERE conversation_id = ?1), 0))`,
          conversation_id,
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
