import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { EverstepError } from "../../domain/errors.ts";
import type { Volume } from "../../domain/volume.ts";
import { Archive } from "./archive.ts";
import { CommitCounter, counterProblem, verifyJournal } from "./commit-counter.ts";
import { counterPath, journalPath, toStoreError } from "./folder-errors.ts";
import { archivedTables, createViews, JOURNAL_TABLES } from "./journal-database.ts";
import { noteClosed, openJournalFile, wasLeftOpen } from "./journal-file.ts";
import { FORMAT } from "./migrations.ts";
import { columnIndex, EMBEDDED_TABLES, HISTORY_NAMES, type HistoryName, type Values } from "./tables.ts";

/** The result of checking a folder. `rows` counts the history, in LanceDB and in the journal. */
export type FolderReport = {
  folder: string;
  format: number;
  rows: Record<HistoryName, number>;
  /** Volumes outside of these, which hold what was archived: their rows are looked at where they are in the folder itself. */
  volumes: Volume[];
  /** What is damaged, and which session or conversation it concerns. Empty if nothing is. */
  problems: string[];
};

/**
 * Reads everything in an unused data folder: every row of the journal and of LanceDB with its checksum, whether iterations and
 * message numbers have gaps or duplicates, and whether referenced rows exist.
 */
export async function checkFolder(folder: string): Promise<FolderReport> {
  if (!existsSync(journalPath(folder)))
    throw new EverstepError(
      "store_foreign",
      `${resolve(folder)} has no journal.sqlite`,
      "pass the folder of an embedded store",
    );
  const rows = { agent_steps: 0, conversation_messages: 0, queue: 0 };
  const report: FolderReport = { folder: resolve(folder), format: FORMAT, rows, volumes: [], problems: [] };
  try {
    await check(folder, report);
  } catch (thrown) {
    noteDamage(report, toStoreError(thrown, folder));
  }
  return report;
}

/** Reports damage; any other error is not about the folder's content. */
function noteDamage(report: FolderReport, error: unknown): void {
  if (!(error instanceof EverstepError && error.code === "store_corrupt")) throw error;
  report.problems.push(error.message);
}

async function check(folder: string, report: FolderReport): Promise<void> {
  const isLeftOpen = wasLeftOpen(folder);
  const { database, format } = openJournalFile(folder);
  try {
    report.format = format ?? FORMAT;
    if (report.format < FORMAT) throw olderFormat(folder, report.format);
    checkJournal(folder, database, report);
    if (report.problems.length > 0) {
      // Opening the tables drops what the journal does not know, which a damaged journal must not cause.
      report.problems.push("the rows in LanceDB were not checked: that needs an undamaged journal");
      return;
    }
    for (const view of createViews(EMBEDDED_TABLES)) database.exec(view);
    const archive = await Archive.open(folder, archivedTables(database));
    try {
      checkHistory(database, await checkTables(archive, report), report);
    } finally {
      archive.close();
    }
    report.problems.push(...missingReferences(database));
    report.volumes = countingVolumes(database);
  } finally {
    database.close();
    // The next start must still detect an earlier crash.
    if (!isLeftOpen) noteClosed(folder);
  }
}

const olderFormat = (folder: string, format: number): EverstepError =>
  new EverstepError(
    "store_older",
    `${resolve(folder)} has format ${format}, in which not every row has a checksum`,
    "start Everstep on it once to upgrade it, then check it",
  );

function checkJournal(folder: string, database: DatabaseSync, report: FolderReport): void {
  try {
    const { totals, damages } = verifyJournal(database);
    report.problems.push(...damages.map((damage) => `${journalPath(report.folder)}: ${damage}`));
    const counted = CommitCounter.read(counterPath(folder));
    const problem = counted && counterProblem(folder, counted, { ...placeOf(database), totals });
    if (problem) noteDamage(report, problem);
  } catch (thrown) {
    noteDamage(report, toStoreError(thrown, folder));
  }
}

function placeOf(database: DatabaseSync): { position: number; revision: number } {
  const tables = [...JOURNAL_TABLES.map((table) => `packed_${table}`), "archived"];
  const highest = tables.map((table) => Number(valueOf(database, `SELECT max(pos) FROM ${table}`) ?? 0));
  return {
    position: Math.max(0, ...highest),
    revision: Number(valueOf(database, "SELECT revision FROM journal_revision") ?? 0),
  };
}

/** Numbers that should have no gaps and no duplicates. */
type Run = { count: number; first: number; last: number; sum: number };

class Runs {
  readonly #runs = new Map<string, Run>();

  add(id: string, number: number): void {
    const run = this.#runs.get(id) ?? { count: 0, first: number, last: number, sum: 0 };
    run.count += 1;
    run.sum += number;
    run.first = Math.min(run.first, number);
    run.last = Math.max(run.last, number);
    this.#runs.set(id, run);
  }

  /** Whether an id has exactly these numbers, each once; none if the last is before the first. */
  isDense(id: string, first: number, last: number): boolean {
    const run = this.#runs.get(id);
    if (!run) return last < first;
    const count = last - first + 1;
    return run.count === count && run.first === first && run.last === last && run.sum === ((first + last) * count) / 2;
  }

  ids(): Iterable<string> {
    return this.#runs.keys();
  }

  lastOf(id: string): number {
    return this.#runs.get(id)?.last ?? 0;
  }
}

type History = { steps: Runs; messages: Runs };

/** Checks every row in LanceDB. */
async function checkTables(archive: Archive, report: FolderReport): Promise<History> {
  const history: History = { steps: new Runs(), messages: new Runs() };
  for (const name of HISTORY_NAMES) {
    try {
      for await (const row of archive.each(name)) {
        if (row.kind === "whole") take(name, row.values, history, report);
        else
          report.problems.push(`the row of ${name} at position ${row.position} in LanceDB does not match its checksum`);
      }
    } catch (error) {
      noteDamage(report, error);
    }
  }
  return history;
}

/** Adds the rows that were not archived yet, and checks that all together are dense. */
function checkHistory(database: DatabaseSync, history: History, report: FolderReport): void {
  const archived = archivedTables(database);
  for (const name of HISTORY_NAMES) {
    const waiting = database.prepare(`SELECT ${WAITING[name]} FROM ${name} WHERE pos > ?`);
    waiting.setReturnArrays(true);
    for (const values of waiting.iterate(archived.get(name)?.pos ?? 0))
      take(name, values as unknown as Values, history, report);
  }
  report.problems.push(...gaps(database, history.steps, history.messages));
}

function take(name: HistoryName, values: Values, { steps, messages }: History, report: FolderReport): void {
  report.rows[name] += 1;
  if (name === "agent_steps" && values[STEP.status] === "ok")
    steps.add(values[STEP.session_id] as string, Number(values[STEP.iteration]));
  if (name === "conversation_messages")
    messages.add(values[MESSAGE.conversation_id] as string, Number(values[MESSAGE.number]));
}

function countingVolumes(database: DatabaseSync): Volume[] {
  const rows = database.prepare("SELECT row FROM packed_volumes ORDER BY volume_id").all();
  return rows
    .map(({ row }) => EMBEDDED_TABLES.toPort("volumes", JSON.parse(String(row)) as Values))
    .filter(({ state }) => state === "archived" || state === "moving");
}

/** How far the steps of sessions and the messages of conversations left for volumes. */
function archivedUpTo(database: DatabaseSync): Map<string, number> {
  const rows = database.prepare(
    "SELECT owner_id, max(last) AS last FROM archived_ranges WHERE state <> 'copied' GROUP BY owner_id",
  );
  return new Map(rows.all().map(({ owner_id, last }) => [String(owner_id), Number(last)]));
}

function* gaps(database: DatabaseSync, steps: Runs, messages: Runs): Generator<string> {
  const archived = archivedUpTo(database);
  const sessions = database.prepare("SELECT session_id, iteration, parent_iteration FROM agent_state");
  const sessionIds = new Set<string>();
  for (const { session_id, iteration, parent_iteration } of sessions.iterate()) {
    const id = String(session_id);
    sessionIds.add(id);
    const first = (archived.get(id) ?? (parent_iteration === null ? -1 : Number(parent_iteration))) + 1;
    if (!steps.isDense(id, first, Number(iteration)))
      yield `steps of session ${id} are missing or duplicated (${first} to ${Number(iteration)} were written)`;
  }
  for (const id of steps.ids()) if (!sessionIds.has(id)) yield `session ${id} is missing, but its steps exist`;
  for (const id of messages.ids())
    if (!messages.isDense(id, (archived.get(id) ?? 0) + 1, messages.lastOf(id)))
      yield `messages of conversation ${id} are missing or duplicated`;
  const numbers = database.prepare("SELECT conversation_id, last FROM message_numbers");
  for (const { conversation_id, last } of numbers.iterate())
    if (Math.max(messages.lastOf(String(conversation_id)), archived.get(String(conversation_id)) ?? 0) < Number(last))
      yield `the last messages of conversation ${String(conversation_id)} are missing`;
}

/** Journal rows whose references are missing. */
function* missingReferences(database: DatabaseSync): Generator<string> {
  for (const [sql, what] of REFERENCES) {
    const statement = database.prepare(sql);
    for (const { id } of statement.iterate()) yield `${what} ${String(id)}`;
  }
}

const REFERENCES: readonly [sql: string, what: string][] = [
  [
    `SELECT session_id AS id FROM agent_state AS child WHERE parent_session_id IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM packed_agent_state WHERE session_id = child.parent_session_id)`,
    "parent missing: forked session",
  ],
  [
    `SELECT session_id AS id FROM packed_agent_state AS session
     WHERE NOT EXISTS (SELECT 1 FROM session_documents WHERE session_id = session.session_id)`,
    "parameters and context missing: session",
  ],
  [
    `SELECT participant_id AS id FROM packed_conversation_participants AS one
     WHERE NOT EXISTS (SELECT 1 FROM packed_conversations WHERE conversation_id = one.conversation_id)`,
    "conversation missing: participant",
  ],
];

const valueOf = (database: DatabaseSync, sql: string): unknown => Object.values(database.prepare(sql).get() ?? {})[0];

const STEP = {
  session_id: columnIndex("agent_steps", "session_id"),
  iteration: columnIndex("agent_steps", "iteration"),
  status: columnIndex("agent_steps", "status"),
};
const MESSAGE = {
  conversation_id: columnIndex("conversation_messages", "conversation_id"),
  number: columnIndex("conversation_messages", "number"),
};

/** Selects the values above at their places, and null for the others. */
const only = (places: Record<string, number>): string => {
  const names = Object.entries(places);
  const last = Math.max(...names.map(([, index]) => index));
  return Array.from({ length: last + 1 }, (_, at) => names.find(([, index]) => index === at)?.[0] ?? "NULL").join(", ");
};
const WAITING: Record<HistoryName, string> = {
  agent_steps: only(STEP),
  conversation_messages: only(MESSAGE),
  queue: "NULL",
};
