import { chmodSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { EverstepError } from "../../../domain/errors.ts";
import { makePrivateFolder } from "../../../files/private-folder.ts";
import { MIGRATIONS } from "./migrations.ts";

const STATE = "state.sqlite";

/**
 * The bot's own durable state: one SQLite file that one process owns.
 *
 * MATRIX-STATE-1  A transaction that has returned is on disk.
 * MATRIX-STATE-2  What belongs together (an event and the position in the stream, an answer and its question) is one
 *                 transaction, so no crash can separate it.
 */
export class Database implements Disposable {
  readonly #sqlite: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  #isOpen = false;

  private constructor(sqlite: DatabaseSync) {
    this.#sqlite = sqlite;
  }

  static open(folder: string): Database {
    const path = join(folder, STATE);
    let sqlite: DatabaseSync | undefined;
    try {
      makePrivateFolder(folder, STATE);
      sqlite = new DatabaseSync(path);
      // It contains an access token and conversations.
      chmodSync(path, 0o600);
      // Exclusive: a second bot on the same state would answer everything twice. MATRIX-STATE-1: FULL waits for the disk.
      sqlite.exec(
        "PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
      );
      sqlite.exec("BEGIN IMMEDIATE");
      migrate(sqlite);
      sqlite.exec("COMMIT");
    } catch (error) {
      sqlite?.close();
      if (error instanceof EverstepError) throw error;
      throw cannotOpen(folder, error as Error);
    }
    return new Database(sqlite);
  }

  /** All or nothing. A nested transaction can fail alone, and reaches the disk with the outer one. */
  transaction<Result>(work: () => Result): Result {
    const isInner = this.#isOpen;
    this.#sqlite.exec(isInner ? "SAVEPOINT inner" : "BEGIN IMMEDIATE");
    this.#isOpen = true;
    try {
      const result = work();
      this.#sqlite.exec(isInner ? "RELEASE inner" : "COMMIT");
      return result;
    } catch (error) {
      this.#sqlite.exec(isInner ? "ROLLBACK TO inner; RELEASE inner" : "ROLLBACK");
      throw error;
    } finally {
      this.#isOpen = isInner;
    }
  }

  run(sql: string, ...values: SQLInputValue[]): { changes: number; id: number } {
    const { changes, lastInsertRowid } = this.#statement(sql).run(...values);
    return { changes: Number(changes), id: Number(lastInsertRowid) };
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  [Symbol.dispose](): void {
    this.#statements.clear();
    this.#sqlite.close();
  }

  #statement(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#sqlite.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

function migrate(sqlite: DatabaseSync): void {
  const { user_version } = sqlite.prepare("PRAGMA user_version").get() as { user_version: number };
  if (user_version > MIGRATIONS.length)
    throw new EverstepError(
      "store_newer",
      "the bot's state was written by a newer version",
      "run that version or a later one, or point MATRIX_STATE at another folder",
    );
  for (const migration of MIGRATIONS.slice(user_version)) sqlite.exec(migration);
  sqlite.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
}

function cannotOpen(folder: string, error: Error): EverstepError {
  return /locked|busy/i.test(error.message)
    ? new EverstepError(
        "matrix_state_locked",
        `another bot uses ${folder}`,
        "stop it, or give this one a folder and a user of its own (MATRIX_STATE, MATRIX_USER_ID)",
        error,
      )
    : new EverstepError(
        "matrix_state_unusable",
        `${folder} cannot be used (${error.message})`,
        "see that the folder can be written, or set MATRIX_STATE",
        error,
      );
}
