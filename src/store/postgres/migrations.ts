import { readFile } from "node:fs/promises";
import type postgres from "postgres";
import { EverstepError } from "../../domain/errors.ts";
import { newId } from "../../domain/ids.ts";
import { askedInState, questionOf } from "../../domain/question.ts";
import type { Schema } from "../schema.ts";
import { type Parameter, run } from "./connections.ts";
import { PostgresReads } from "./postgres-reads.ts";
import { arrayOf, LIVE, Tables, toText } from "./tables.ts";

const FILE = new URL("./migrations.sql", import.meta.url);
const HEADING = /^-- migration (\d{4}) ([a-z0-9-]+)( breaking)?$/gm;
/** The advisory lock of MIGRATE-2. */
const LOCK = 0x45_56_53_54;

type Migration = { number: number; name: string; breaking: boolean; sql: string };
/** A migration that is not in the file. */
export type AddedMigration = Omit<Migration, "breaking">;

/**
 * Brings the schema up to this program's version.
 *
 * MIGRATE-1  Migrations are numbered and named, run in order, each in one transaction with its row in `schema_migrations`, and are
 *     never edited once landed.
 * MIGRATE-2  One program migrates at a time; the others wait for it.
 * MIGRATE-3  A schema with a later migration marked as breaking is refused; one that only adds is fine, so that programs can be
 *     upgraded one after the other.
 */
export async function migrate(client: postgres.Sql, schema: Schema, added: readonly AddedMigration[]): Promise<void> {
  const migrations = [...(await readMigrations()), ...added.map((migration) => ({ ...migration, breaking: false }))];
  await client.begin(async (transaction) => {
    await run(transaction, "select pg_advisory_xact_lock($1)", [LOCK]); // MIGRATE-2
    await run(
      transaction,
      `create table if not exists schema_migrations
         (number integer primary key, name text not null, breaking boolean not null, applied_at timestamptz not null default now())`,
    );
    const applied = await run(transaction, "select number, name, breaking from schema_migrations");
    refuseNewer(
      applied as { number: number; name: string; breaking: boolean }[],
      Math.max(...migrations.map(({ number }) => number)),
    );
    const done = new Set(applied.map(({ number }) => Number(number)));
    for (const { number, name, breaking, sql } of migrations) {
      if (done.has(number)) continue;
      await transaction.unsafe(sql);
      await run(transaction, "insert into schema_migrations (number, name, breaking) values ($1, $2, $3)", [
        number,
        name,
        breaking,
      ]);
    }
    // After all migrations, because backfills read with this version's columns.
    for (const { number } of migrations) if (!done.has(number)) await BACKFILLS[number]?.(transaction, schema);
  });
}

/** Values that a migration cannot compute in SQL, by its number. */
const BACKFILLS: Readonly<Record<number, (transaction: postgres.TransactionSql, schema: Schema) => Promise<void>>> = {
  7: fillInQuestions,
};

export async function readMigrations(): Promise<Migration[]> {
  const text = await readFile(FILE, "utf8");
  const headings = [...text.matchAll(HEADING)];
  return headings.map(({ index, 0: heading, 1: number, 2: name = "", 3: breaking }, at) => ({
    number: Number(number),
    name,
    breaking: breaking !== undefined,
    sql: text.slice(index + heading.length, headings[at + 1]?.index),
  }));
}

/** MIGRATE-3. */
function refuseNewer(applied: { number: number; name: string; breaking: boolean }[], newest: number): void {
  const ahead = applied.find(({ number, breaking }) => number > newest && breaking);
  if (!ahead) return;
  throw new EverstepError(
    "store_newer",
    `the database was migrated by a newer Everstep (${ahead.number} ${ahead.name})`,
    "use that version, or restore a backup from before",
  );
}

const PAGE = 200;

/** Fills in the questions of sessions that asked before rows had a column for it, from their states. */
async function fillInQuestions(transaction: postgres.TransactionSql, schema: Schema): Promise<void> {
  const pool = { query: (text: string, ...parameters: Parameter[]) => run(transaction, text, parameters) };
  const reads = new PostgresReads(pool, new Tables(schema));
  for (let last = 0; ; ) {
    const rows = await run(
      transaction,
      `select ${reads.sessionColumns}, s.number from agent_state s where s.number > $1 and s.status in (${LIVE})
         and (s.context::text like '%"question"%' or exists (select 1 from agent_steps t where t.session_id = s.session_id
           and t.iteration between s.base_iteration and s.iteration and t.state::text like '%"question"%'))
       order by s.number limit ${PAGE}`,
      [last],
    );
    const asking = (await reads.loadSessions(rows)).flatMap(({ session }) => {
      const ask = askedInState(session.context);
      if (!ask) return [];
      const { session_id, iteration, updated_at: asked_at } = session;
      const question = questionOf(ask, { question_id: newId(), asked_at, iteration: Math.max(0, iteration) });
      return [{ session_id: toText(session_id), question: toText(JSON.stringify(question)) }];
    });
    await run(
      transaction,
      `update agent_state s set question = i.question from unnest($1::text[], $2::text[]) as i (session_id, question)
       where s.session_id = i.session_id`,
      [arrayOf(asking.map(({ session_id }) => session_id)), arrayOf(asking.map(({ question }) => question))],
    );
    if (rows.length < PAGE) return;
    last = Number(rows.at(-1)?.["number"]);
  }
}
