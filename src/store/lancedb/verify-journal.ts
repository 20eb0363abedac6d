import type { DatabaseSync } from "node:sqlite";
import { JOURNAL_TABLES, type JournalTable, MISNAMED, PACKED } from "./journal-sql.ts";
import { JournalTotals } from "./journal-totals.ts";
import { sumOfDocuments, sumOfRow, sumOfValues } from "./row-sums.ts";
import type { Value, Values } from "./tables.ts";

/** Looks at every row of the journal: what it adds up to, and what is not as it was written. */
export function verifyJournal(database: DatabaseSync): { totals: JournalTotals; damages: string[] } {
  const damages: string[] = [];
  const structure = database.prepare("PRAGMA integrity_check(1)").get()?.["integrity_check"];
  if (structure !== "ok") damages.push(String(structure));
  const totals = addUp(database, (what) => damages.push(what));
  for (const table of JOURNAL_TABLES) {
    const sql = MISNAMED[table];
    const [misnamed] = (sql && each(database, sql).next().value) ?? [];
    if (misnamed !== undefined) damages.push(`the row ${misnamed} of ${table} is filed under another name`);
  }
  return { totals, damages };
}

/** What the counter knows that the journal does not hold: null where it holds all. */
export function missingRows(counted: JournalTotals, totals: JournalTotals): string | null {
  const found = counted.difference(totals);
  return found && `${found.table} has ${found.rows} rows where ${found.expected} were written, or others`;
}

/** The totals of what is there. `damaged` is told of rows that do not match their checksum. */
export function addUp(database: DatabaseSync, damaged: (what: string) => void): JournalTotals {
  const totals = new JournalTotals();
  for (const table of JOURNAL_TABLES)
    for (const [row, ...numbers] of each(database, `SELECT ${PACKED[table]} FROM ${packedName(table)}`)) {
      const sum = numbers.pop() as number;
      if (typeof row !== "string" || sumOfRow(row, numbers as number[]) !== sum)
        damaged(`the row of ${table} at position ${numbers[0]} does not match its checksum`);
      totals.add(table, sum);
    }
  for (const [id, params, context, sum] of each(
    database,
    "SELECT session_id, params, context, sum FROM session_documents",
  )) {
    if (sumOfDocuments(params as string, context as string | null) !== sum)
      damaged(`the parameters or the context of session ${id} do not match their checksum`);
    totals.add("session_documents", Number(sum));
  }
  for (const [id] of each(database, "SELECT message_id FROM message_keys"))
    totals.add("message_keys", sumOfValues(id as string));
  for (const values of each(database, "SELECT conversation_id, last FROM message_numbers"))
    totals.add("message_numbers", sumOfValues(...(values as (string | number)[])));
  for (const values of each(database, "SELECT name, version, pos FROM archived"))
    totals.add("archived", sumOfValues(...(values as (string | number)[])));
  totals.keep();
  return totals;
}

const packedName = (table: JournalTable): string => `packed_${table}`;

function* each(database: DatabaseSync, sql: string): Generator<Values, undefined> {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  for (const row of statement.iterate()) yield row as unknown as Value[];
}
