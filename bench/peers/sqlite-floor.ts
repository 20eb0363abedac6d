import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { groupWrites, runLoops, type StepRow } from "./floor.ts";
import type { OpenPeer } from "./peer.ts";

/**
 * The lower bound for durable steps in SQLite: an insert that is on disk when it returns. The variant is `single` or `grouped`.
 */
export const open: OpenPeer = async ({ folder }, step, variant) => {
  mkdirSync(folder, { recursive: true });
  const database = new DatabaseSync(join(folder, "floor.sqlite"));
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  database.exec(
    "CREATE TABLE IF NOT EXISTS steps (session_id TEXT, step INTEGER, piece TEXT, PRIMARY KEY (session_id, step))",
  );
  const insert = database.prepare("INSERT INTO steps VALUES (?, ?, ?)");
  const one = async ({ session_id, index, piece }: StepRow): Promise<void> => void insert.run(session_id, index, piece);
  const grouped = groupWrites(async (rows) => {
    database.exec("BEGIN");
    for (const { session_id, index, piece } of rows) insert.run(session_id, index, piece);
    database.exec("COMMIT");
  });
  const write = variant === "grouped" ? grouped : one;
  return {
    run: (session_ids, task) => runLoops(session_ids, task, step, write),
    close: async () => database.close(),
  };
};
