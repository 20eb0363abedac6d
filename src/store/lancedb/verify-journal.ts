import type { DatabaseSync } from "node:sqlite";
import type { EverstepError } from "../../domain/errors.ts";
import type { Counted } from "./commit-counter.ts";
import { corrupt, lostCommits } from "./journal-file.ts";
import { JOURNAL_TABLES, PACKED } from "./journal-sql.ts";
import { JournalTotals } from "./journal-totals.ts";
import { sumOfDocuments, sumOfValues } from "./row-sums.ts";
import type { Values } from "./tables.ts";
import { isWholeRow, nameOfRow } from "./verified-rows.ts";

/** Looks at every row of the journal: what it adds up to, and what is not as it was written. */
export function verifyJournal(database: DatabaseSync): { totals: JournalTotals; damages: string[] } {
  const damages: string[] = [];
  const structure = database.prepare("PRAGMA integrity_check(1)").get()?.["integrity_check"];
  if (structure !== "ok") damages.push(String(structure));
  const totals = addUp(database, (what) => damages.push(what));
  return { totals, damages };
}

/** COUNTER-1, COUNTER-2: what the counter knows that the journal does not hold; null where it holds all. */
export function counterProblem(folder: string, counted: Counted, found: Counted): EverstepError | null {
  if (counted.position > found.position || counted.revision > found.revision)
    return lostCommits(folder, { counted: place(counted), found: place(found) });
  // The process was killed, or the power lost, before it could count its last transaction.
  if (counted.position < found.position || counted.revision < found.revision) return null;
  const other = counted.totals.difference(found.totals);
  return (
    other && corrupt(folder, `${other.table} has ${other.rows} rows where ${other.expected} were written, or others`)
  );
}

const place = ({ position, revision }: Counted): string => `position ${position}, revision ${revision}`;

/** The totals of what is there. `damaged` is told of rows that are not as they were written. */
function addUp(database: DatabaseSync, damaged: (what: string) => void): JournalTotals {
  const totals = new JournalTotals();
  for (const table of JOURNAL_TABLES)
    for (const packed of each(database, `SELECT ${PACKED[table]} FROM packed_${table}`)) {
      if (!isWholeRow(table, packed)) damaged(`${nameOfRow(table, packed)} does not match its checksum or its key`);
      totals.add(table, packed[1] as number);
    }
  for (const [id, params, context, sum] of each(
    database,
    "SELECT session_id, params, context, sum FROM session_documents",
  )) {
    if (sumOfDocuments(String(id), String(params), context === null ? null : String(context)) !== sum)
      damaged(`the parameters or the context of session ${id} do not match their checksum`);
    totals.add("session_documents", sum as number);
  }
  for (const table of ["message_keys", "message_numbers", "archived"] as const)
    for (const values of each(database, `SELECT * FROM ${table}`)) totals.add(table, sumOfValues(...values));
  totals.keep();
  return totals;
}

function* each(database: DatabaseSync, sql: string): Generator<Values, undefined> {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  for (const row of statement.iterate()) yield row as unknown as Values;
}
