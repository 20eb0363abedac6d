import { DatabaseSync } from "node:sqlite";

/** The lower bound for a durable write: one insert into SQLite, on disk when it returns. */
export function openBareInsert(path: string): { insert(text: string): void; close(): void } {
  const database = new DatabaseSync(path);
  database.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)",
  );
  const statement = database.prepare("INSERT INTO rows (text) VALUES (?)");
  return { insert: (text) => void statement.run(text), close: () => database.close() };
}
