import type { DatabaseSync } from "node:sqlite";
import { Archive } from "./archive.ts";
import { archivedTables, CREATE_REVISION, RECORD_ARCHIVED } from "./journal-sql.ts";
import type { FolderFormat, Migration } from "./migrations.ts";
import type { EmbeddedTables, TableName } from "./tables.ts";

/** Told, in words for a person, what an upgrade is doing. */
export type Notice = (text: string) => void;

/**
 * Brings a data folder from an older format to another. The journal is open and locked.
 *
 * UPGRADE-1  Migrations run in order. Each changes the LanceDB tables first and syncs them; then one SQLite transaction changes the
 *     journal, records the tables' new versions and the new format. A start goes back to the recorded versions, so after
 *     SIGKILL or loss of power at any point the folder is in the old format or in the new one.
 * UPGRADE-2  A column is added as metadata, so that the time does not depend on how many rows there are. A row of history carries
 *     the number of columns that it was stored with (`checked-rows.ts`), which its checksum is compared over.
 */
export async function upgradeFolder(
  folder: string,
  database: DatabaseSync,
  from: number,
  format: FolderFormat,
  notice: Notice,
): Promise<void> {
  for (const migration of format.migrations) {
    if (migration.format <= from) continue;
    notice(`upgrading ${folder} to format ${migration.format} of ${format.number} (${migration.name})`);
    const widened = await widenTables(folder, database, migration, format.tables);
    database.exec("BEGIN IMMEDIATE");
    try {
      migration.journal?.(database);
      // The commit counter does not know of it: the journal is to look as if it was killed before it counted.
      if (migration.format > CHECKSUMS_SINCE)
        database.exec([...CREATE_REVISION, "UPDATE journal_revision SET revision = revision + 1"].join(";\n"));
      for (const mark of widened) database.prepare(RECORD_ARCHIVED).run(mark.name, mark.version, mark.pos);
      database.exec(`PRAGMA user_version = ${migration.format}`);
      database.exec("COMMIT"); // UPGRADE-1
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }
}

/** The first format whose journal has checksums. */
export const CHECKSUMS_SINCE = 4;

type Mark = { name: TableName; version: number; pos: number };

/** UPGRADE-2. Answers the versions to record of the tables that were changed. */
async function widenTables(
  folder: string,
  database: DatabaseSync,
  { columns }: Migration,
  tables: EmbeddedTables,
): Promise<Mark[]> {
  const archived = archivedTables(database);
  const archive = await Archive.open(folder, archived, tables);
  const marks: Mark[] = [];
  try {
    for (const [name, added] of Object.entries(columns) as [TableName, readonly string[]][]) {
      const mark = archived.get(name);
      if (!mark || !archive.has(name)) continue;
      await archive.addColumns(name, added);
      await archive.sync(name);
      marks.push({ name, version: await archive.version(name), pos: mark.pos });
    }
  } finally {
    archive.close();
  }
  return marks;
}
