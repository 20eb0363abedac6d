import { existsSync } from "node:fs";
import { journalPath } from "./folder-errors.ts";
import { noteClosed, openJournalFile, wasLeftOpen } from "./journal-file.ts";
import { FORMAT } from "./migrations.ts";

/** The format of a data folder that nobody uses, beside the newest one; null where there is none yet. It is not upgraded. */
export function inspectFolder(folder: string): { format: number; newest: number } | null {
  if (!existsSync(journalPath(folder))) return null;
  const isLeftOpen = wasLeftOpen(folder);
  const { database, format } = openJournalFile(folder);
  database.close();
  // The next start is to know of a crash as before.
  if (!isLeftOpen) noteClosed(folder);
  return { format: format ?? FORMAT, newest: FORMAT };
}
