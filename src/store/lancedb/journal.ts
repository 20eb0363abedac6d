import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Chain, readState, type StoredState } from "../state-chain.ts";
import { openJournalFile, toStoreError } from "./journal-file.ts";
import { ACTION_ID, COLUMNS, INSERT, type JournalTable, MESSAGE, NEEDED_FOR_CONTEXT, POSITION } from "./journal-sql.ts";
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
  readonly #database: DatabaseSync;
  readonly #folder: string;
  readonly #statements = new Map<string, StatementSync>();
  #position: number;
  /** Snapshots that changed since they were copied into LanceDB. */
  readonly dirty = new Map<SnapshotName, Set<string>>(SNAPSHOT_NAMES.map((name) => [name, new Set()]));

  constructor(folder: string) {
    this.#folder = folder;
    this.#database = openJournalFile(folder);
    const archived = this.archived();
    const positions = Object.keys(TABLES).map((name) => Number(this.#value(`SELECT max(pos) FROM ${name}`) ?? 0));
    const open = Number(this.#value("SELECT max(pos) FROM open_actions") ?? 0);
    this.#position = Math.max(0, open, ...positions, ...[...archived.values()].map(({ pos }) => pos));
    for (const name of SNAPSHOT_NAMES) {
      const key = TABLES[name][0]?.name;
      const copied = archived.get(name)?.pos ?? 0;
      for (const [id] of this.#rows(`SELECT ${key} FROM ${name} WHERE pos > ?`, copied))
        this.dirty.get(name)?.add(id as string);
    }
  }

  get position(): number {
    return this.#position;
  }

  /** J1. A batch that meets an id that is there already is left out; the others are written. */
  apply(batches: WireBatch[]): WireOutcome[] {
    return this.#transaction(() => batches.map((batch) => this.#existing(batch) ?? this.#write(batch)));
  }

  /** Final rows after a position, oldest first: what is to be moved next. */
  unmoved(table: HistoryName, after: number, upTo: number, limit: number): Values[] {
    return this.#rows(
      `SELECT ${COLUMNS[table]} FROM ${table} WHERE pos > ? AND pos <= ? ORDER BY pos LIMIT ?`,
      after,
      upTo,
      limit,
    );
  }

  countUnmoved(table: HistoryName, after: number): number {
    return Number(this.#value(`SELECT count(*) FROM ${table} WHERE pos > ?`, after));
  }

  /** Rows that match, from a table or from `open_actions`. */
  read(table: HistoryName | "open_actions", where: Where, order: string, limit: number, offset = 0): Values[] {
    const { sql, values } = toSqlite(where);
    return this.#rows(
      `SELECT ${COLUMNS[table]} FROM ${table} WHERE ${sql} ORDER BY ${order} LIMIT ? OFFSET ?`,
      ...values,
      limit,
      offset,
    );
  }

  count(table: HistoryName | "open_actions", where: Where): number {
    const { sql, values } = toSqlite(where);
    return Number(this.#value(`SELECT count(*) FROM ${table} WHERE ${sql}`, ...values));
  }

  /** Rows of a snapshot table by SQL that the callers in this folder write; values are always bound. */
  snapshots(table: SnapshotName, clause: string, ...values: Value[]): Values[] {
    return this.#rows(`SELECT ${COLUMNS[table]} FROM ${table} ${clause}`, ...values);
  }

  query(sql: string, ...values: Value[]): Values[] {
    return this.#rows(sql, ...values);
  }

  documents(session_id: string): { params: string; context: string | null } {
    const row = this.#rows("SELECT params, context FROM session_documents WHERE session_id = ?", session_id)[0];
    return { params: (row?.[0] as string) ?? "{}", context: (row?.[1] as string) ?? null };
  }

  /** J3. Null where no step of the session is at hand: then the documents hold its context. */
  chain(session_id: string): Chain | null {
    const rows = this.#rows(
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
    const rows = this.#rows("SELECT name, version, pos FROM archived");
    return new Map(
      rows.map(([name, version, pos]) => [name as TableName, { version: Number(version), pos: Number(pos) }]),
    );
  }

  /** J2. Durable when it returns. */
  markArchived(marks: { name: TableName; version: number; pos: number }[]): void {
    this.#transaction(() => {
      for (const { name, version, pos } of marks)
        this.#run("INSERT OR REPLACE INTO archived (name, version, pos) VALUES (?, ?, ?)", name, version, pos);
    });
  }

  /** Looks at the next moved rows of a table and removes them, but for J3. Answers how far it got; null at the end. */
  trim(table: HistoryName, after: number, upTo: number, limit: number): number | null {
    const end = this.#value(
      `SELECT max(pos) FROM (SELECT pos FROM ${table} WHERE pos > ? AND pos <= ? ORDER BY pos LIMIT ?)`,
      after,
      upTo,
      limit,
    );
    if (end === null || end === undefined) return null;
    const keep = table === "agent_steps" ? `AND NOT EXISTS (${NEEDED_FOR_CONTEXT})` : "";
    this.#run(`DELETE FROM ${table} WHERE pos > ? AND pos <= ? ${keep}`, after, end);
    return Number(end);
  }

  /** Gives the space of removed rows back to the file system. */
  shrink(): void {
    this.#guard(() => this.#database.exec("PRAGMA incremental_vacuum(2000)"));
  }

  close(): void {
    this.#database.exec("PRAGMA incremental_vacuum");
    this.#statements.clear();
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
    for (const values of batch.conversation_messages) {
      const id = values[MESSAGE.message_id] as string;
      if (this.#has("message_keys", "message_id", id)) return { kind: "exists", table: "conversation_messages", id };
    }
    return null;
  }

  #write(batch: WireBatch): WireOutcome {
    for (const session of batch.sessions) this.#writeSession(session);
    for (const values of batch.agent_steps) this.#insert("agent_steps", values);
    for (const values of batch.conversation_messages) {
      this.#run("INSERT INTO message_keys (message_id) VALUES (?)", values[MESSAGE.message_id] as string);
      values[MESSAGE.number] = this.#nextNumber(values[MESSAGE.conversation_id] as string);
      this.#insert("conversation_messages", values);
    }
    for (const { final, values } of batch.actions) {
      if (!final) this.#insert("open_actions", values);
      else {
        this.#run("DELETE FROM open_actions WHERE action_id = ?", values[ACTION_ID] as string);
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
      this.#run(
        "INSERT INTO session_documents (session_id, params, context) VALUES (?, ?, ?)",
        id,
        params ?? "{}",
        context ?? null,
      );
    else if (context !== undefined)
      this.#run("UPDATE session_documents SET context = ? WHERE session_id = ?", context, id);
    this.bytes += (params?.length ?? 0) + (context?.length ?? 0);
  }

  #insert(table: JournalTable, values: Values): void {
    values[POSITION[table]] = ++this.#position;
    for (const value of values) this.bytes += typeof value === "string" ? value.length : 8;
    this.#run(INSERT[table], ...values);
    this.dirty.get(table as SnapshotName)?.add(values[0] as string);
  }

  #nextNumber(conversation_id: string): number {
    return Number(
      this.#value(
        `INSERT INTO message_numbers (conversation_id, last) VALUES (?, 1)
         ON CONFLICT (conversation_id) DO UPDATE SET last = last + 1 RETURNING last`,
        conversation_id,
      ),
    );
  }

  #has(table: string, column: string, id: string): boolean {
    return this.#value(`SELECT 1 FROM ${table} WHERE ${column} = ?`, id) !== undefined;
  }

  #transaction<Result>(work: () => Result): Result {
    return this.#guard(() => {
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        this.#database.exec("COMMIT");
        return result;
      } catch (error) {
        // A full disk may have rolled back already.
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        throw error;
      }
    });
  }

  #guard<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw toStoreError(error, this.#folder);
    }
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays(true);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #run(sql: string, ...values: Value[]) {
    return this.#guard(() => this.#statement(sql).run(...values));
  }

  #rows(sql: string, ...values: Value[]): Values[] {
    return this.#guard(() => this.#statement(sql).all(...values) as unknown as Values[]);
  }

  #value(sql: string, ...values: Value[]): Value | undefined {
    return this.#guard(() => (this.#statement(sql).get(...values) as unknown as Values | undefined)?.[0]);
  }
}
