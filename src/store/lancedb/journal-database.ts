import type { DatabaseSync, StatementSync } from "node:sqlite";
import { parseDefensively } from "../../domain/json.ts";
import { beginningOf, searchedText } from "../../domain/session-summary.ts";
import { fromText } from "./exact-text.ts";
import { toStoreError } from "./journal-file.ts";
import { type Archived, archivedTables } from "./journal-sql.ts";
import type { TableName, Value, Values } from "./tables.ts";

/** Told after each transaction: it is on disk, or it came to nothing. */
type TransactionOutcome = { onKept: () => void; onUndone: () => void };

/** SQLite as the journal uses it: statements are prepared once, rows are lists, errors are coded. */
export class JournalDatabase {
  readonly #database: DatabaseSync;
  readonly #folder: string;
  readonly #outcome: TransactionOutcome;
  readonly #statements = new Map<string, StatementSync>();

  constructor(folder: string, database: DatabaseSync, outcome: TransactionOutcome) {
    this.#folder = folder;
    this.#outcome = outcome;
    this.#database = database;
    this.#database.function("searched_text", { deterministic: true }, (session_id, agent_id, moniker, result) =>
      searchedText({
        session_id: String(session_id),
        agent_id: String(agent_id),
        moniker: fromText(String(moniker)),
        text: beginningOf(parseDefensively(result as string | null)),
      }),
    );
  }

  /** On disk when it returns. */
  transaction<Result>(work: () => Result): Result {
    return this.#guard(() => {
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        this.#database.exec("COMMIT");
        this.#outcome.onKept();
        return result;
      } catch (error) {
        // A full disk may have rolled back already.
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        this.#outcome.onUndone();
        throw error;
      }
    });
  }

  /** On disk with the next transaction that is: for what may be done again after a crash. */
  lazyTransaction<Result>(work: () => Result): Result {
    this.#database.exec("PRAGMA synchronous = NORMAL");
    try {
      return this.transaction(work);
    } finally {
      this.#database.exec("PRAGMA synchronous = FULL");
    }
  }

  run(sql: string, ...values: Value[]) {
    // Not by `#guard`: a commit comes here several times.
    try {
      return this.#statement(sql).run(...values);
    } catch (error) {
      throw toStoreError(error, this.#folder);
    }
  }

  rows(sql: string, ...values: Value[]): Values[] {
    return this.#guard(() => this.#statement(sql).all(...values) as unknown as Values[]);
  }

  /** One row at a time, for tables that may be large. */
  *each(sql: string, ...values: Value[]): Generator<Values> {
    try {
      for (const row of this.#statement(sql).iterate(...values)) yield row as unknown as Values;
    } catch (error) {
      throw toStoreError(error, this.#folder);
    }
  }

  archived(): Map<TableName, Archived> {
    return this.#guard(() => archivedTables(this.#database));
  }

  value(sql: string, ...values: Value[]): Value | undefined {
    return this.#guard(() => (this.#statement(sql).get(...values) as unknown as Values | undefined)?.[0]);
  }

  /** Gives the space of removed rows back to the file system, so many pages at the most. */
  shrink(pages: number): void {
    this.#guard(() => this.#database.exec(`PRAGMA incremental_vacuum(${pages})`));
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
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

  #guard<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw toStoreError(error, this.#folder);
    }
  }
}
