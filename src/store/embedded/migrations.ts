import type { DatabaseSync } from "node:sqlite";
import { SCHEMA, type Schema } from "../schema.ts";
import { Archive } from "./archive.ts";
import { archivedTables, CREATE_REVISION, RECORD_ARCHIVED } from "./journal-database.ts";
import { sumOfDocuments, sumOfRow } from "./row-checksums.ts";
import { EmbeddedTables, type TableName } from "./tables.ts";

/** The oldest format that can be upgraded, and the format that this version writes. */
export const OLDEST_FORMAT = 2;
export const FORMAT = 7;

export type Migration = {
  /** The resulting format. */
  format: number;
  name: string;
  /** Columns appended to tables. Existing rows are not rewritten: they read as null. */
  columns: Partial<Record<TableName, readonly string[]>>;
  /** Other changes in the journal, within the transaction that records the format. */
  journal?: (database: DatabaseSync) => void;
};

/** A schema other than this version's, with the migrations from this version's. It can be sent to another thread. */
export type OtherSchema = { schema: Schema; migrations: readonly Omit<Migration, "format" | "journal">[] };

/** The target of a data folder: its tables, and the migrations that lead there. */
export class FolderFormat {
  readonly tables: EmbeddedTables;
  readonly migrations: readonly Migration[];

  constructor({ schema, migrations }: OtherSchema = { schema: SCHEMA, migrations: [] }) {
    this.tables = new EmbeddedTables(schema);
    const added = migrations.map((migration, at) => ({ ...migration, format: FORMAT + 1 + at }));
    this.migrations = [...MIGRATIONS, ...added];
  }

  /** The format of the last migration. */
  get number(): number {
    return this.migrations.at(-1)?.format ?? FORMAT;
  }
}

/** In order, each from the previous format. Never edited once landed; `upgradeFolder` runs them. */
export const MIGRATIONS: readonly Migration[] = [
  {
    format: 3,
    name: "session-pause-reason",
    columns: { agent_state: ["pause_reason", "started_attempt"] },
  },
  { format: 4, name: "journal-checksums", columns: {}, journal: addChecksums },
  {
    format: 5,
    name: "waiting-asking-acting",
    columns: {
      agent_state: [
        "question",
        "wake_at",
        "rests_since",
        "spawned_by",
        "spawner_id",
        "retry_at",
        "cost_usd",
        "step_started_at",
      ],
      agent_steps: ["moniker_version", "cost_usd", "attempts", "calls", "directives"],
    },
  },
  // Two tables, which every start creates if they are missing.
  { format: 6, name: "webhooks", columns: {} },
  // Beside the column, tables of archived history, which every start creates too.
  { format: 7, name: "crashes-and-volumes", columns: { agent_steps: ["crashes"] } },
];

const PACKED_TABLES = [
  "packed_agent_steps",
  "packed_conversation_messages",
  "packed_queue",
  "packed_agent_state",
  "packed_agent_config",
  "packed_conversations",
  "packed_conversation_participants",
  "packed_session_cursors",
  "packed_open_actions",
];

function addChecksums(database: DatabaseSync): void {
  database.function("sum_of_row", { deterministic: true }, (row, pos, number) =>
    sumOfRow(String(row), Number(pos), Number(number)),
  );
  database.function("sum_of_documents", { deterministic: true }, (session_id, params, context) =>
    sumOfDocuments(String(session_id), String(params), context === null ? null : String(context)),
  );
  for (const table of PACKED_TABLES) {
    const number = table === "packed_conversation_messages" ? "number" : "0";
    database.exec(`ALTER TABLE ${table} ADD COLUMN sum INTEGER`);
    database.exec(`UPDATE ${table} SET sum = sum_of_row(row, pos, ${number})`);
  }
  database.exec("ALTER TABLE session_documents ADD COLUMN sum INTEGER");
  database.exec("UPDATE session_documents SET sum = sum_of_documents(session_id, params, context)");
}

/** Receives, as text for a person, what an upgrade is doing. */
export type Notice = (text: string) => void;

/**
 * Upgrades a data folder from an older format. The journal is open and locked.
 *
 * UPGRADE-1  Migrations run in order. Each changes and syncs the LanceDB tables first; then one SQLite transaction changes the
 *            journal, records the tables' new versions and the new format. A start rewinds to the recorded versions, so after
 *            SIGKILL or power loss at any point the folder has either the old or the new format.
 * UPGRADE-2  A column is added as metadata, so the time does not depend on the number of rows. A history row carries the number
 *            of columns it was stored with (`row-checksums.ts`), over which its checksum is compared.
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
      // The commit counter does not include it: the journal must look as if it was killed before counting.
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

/** UPGRADE-2. Returns the versions to record of the changed tables. */
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
