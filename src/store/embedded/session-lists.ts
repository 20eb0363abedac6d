import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { Mutex } from "../../concurrency/mutex.ts";
import { SESSION_STATUSES, type SessionStatus } from "../../domain/session.ts";
import { beginningOf, needsPerson, searchedText } from "../../domain/session-summary.ts";
import { folded } from "../../domain/words.ts";
import type { ListPlace, SessionSort, StoreCounts, SummaryFilter } from "../store.ts";
import { toStoreError } from "./folder-errors.ts";
import type { Journal, NumberedRow } from "./journal.ts";
import { type EmbeddedTables, toText, type Value, type Values } from "./tables.ts";

type SessionCounts = StoreCounts["sessions"];
export type SummaryRows = { rows: Values[]; total: number; counts: SessionCounts; exact: boolean };

/**
 * What a list is made of, and the index that it is read along: null where it is of sessions that are known one by one, or of all
 * of them in the order they arrived. `counted` is where its counts are kept; null where they are not.
 */
type Listing = { parts: Condition[]; index: IndexName | null; counted: CountKey | null };
type Condition = { sql: string; values: Value[] };
type IndexName = "agent" | "moniker" | "need" | "status";
type CountKey = [kind: "all" | "agent" | "moniker" | "need", key: string];

/** `taken`: how far the sessions that were there before were taken in; null: all of them. */
type MadeLists = { database: ListDatabase; changed: Set<string>; taken: number | null };

/** Sessions that are taken in at a time, so that no commit waits long. */
const CHUNK = 200;
/** So many that changed are taken in though nobody asks for a list. */
const MOST_CHANGED = 5000;
/** Sessions that fit a search are counted up to here. */
const MOST_COUNTED = 4000;
const FILE = "lists.tmp";

/**
 * By what sessions are listed, in a database of its own: a page costs the same however many sessions there are.
 *
 * It is made anew by every process, when a list is first asked for: nothing depends on it, no commit writes it, and no crash
 * or damage can leave it wrong.
 *
 * LISTING-1  A list is read once every session that changed since was taken in, in the same turn, so that it shows all that was
 *     committed before it was asked for, and its rows are those that it was made from.
 * LISTING-2  Where it cannot be written, on a full disk say, it is forgotten, and the next list makes it anew.
 */
export class SessionLists {
  readonly #journal: Journal;
  readonly #tables: EmbeddedTables;
  readonly #folder: string;
  readonly #path: string;
  readonly #turns = new Mutex();
  /** While there are any, the journal tells which sessions change. */
  #made: MadeLists | undefined;
  #isCatchingUp = false;
  /** Sessions that ask something which their rows do not tell. */
  #asking: ReadonlySet<string> = new Set();

  constructor(folder: string, journal: Journal, tables: EmbeddedTables) {
    this.#journal = journal;
    this.#tables = tables;
    this.#folder = folder;
    this.#path = join(folder, FILE);
    rmSync(this.#path, { force: true, recursive: true });
  }

  /** The ids of sessions in the list's order. */
  async ids(filter: SummaryFilter, asking: string[]): Promise<string[]> {
    return this.#read(asking, (database) => {
      const arrivals = pageOf(this.#journal, database, filter);
      return this.#rows(arrivals).map(([id]) => id as string);
    });
  }

  async summaries(filter: SummaryFilter, asking: string[]): Promise<SummaryRows> {
    return this.#read(asking, (database) => {
      const rows = this.#rows(pageOf(this.#journal, database, filter));
      const counts = countsOf(this.#journal, database, filter);
      const total = [...new Set(filter.statuses ?? SESSION_STATUSES)].reduce((sum, status) => sum + counts[status], 0);
      const isCapped = filter.q !== undefined && sumOf(counts) >= MOST_COUNTED;
      return { rows, total, counts, exact: !isCapped };
    });
  }

  /** From the journal until there are lists: they are not made only to be counted. */
  async counts(): Promise<SessionCounts> {
    if (!this.#made) return toCounts(this.#journal.query("SELECT status, count(*) FROM agent_state GROUP BY status"));
    return this.#read([...this.#asking], (database) => storedCounts(database, ["all", ""]));
  }

  /** Agents by id with the number of their sessions. */
  agents(limit: number, offset: number): Promise<[agent_id: string, count: number][]> {
    const page = `SELECT key, sum(count) FROM counts WHERE kind = 'agent' GROUP BY key HAVING sum(count) > 0
      ORDER BY key LIMIT ? OFFSET ?`;
    return this.#read([...this.#asking], (database) => database.rows(page, limit, offset) as [string, number][]);
  }

  /** Called after every commit: what changed is not kept in mind without end. */
  catchUp(): void {
    if (!this.#made || this.#made.changed.size < MOST_CHANGED || this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    this.#read([...this.#asking], () => {})
      .catch(() => {}) // LISTING-2
      .finally(() => (this.#isCatchingUp = false));
  }

  /** Awaits the list that is being read, and leaves no file. */
  close(): Promise<void> {
    return this.#turns.run(async () => this.#forget());
  }

  /** LISTING-1. */
  #read<Result>(asking: string[], read: (database: ListDatabase) => Result): Promise<Result> {
    return this.#turns.run(async () => {
      try {
        const made = (this.#made ??= this.#make());
        this.#noteAsking(asking, made.changed);
        while (!this.#takeIn(made)) await new Promise(setImmediate);
        return read(made.database);
      } catch (error) {
        this.#forget(); // LISTING-2
        throw toStoreError(error, this.#folder);
      }
    });
  }

  #make(): MadeLists {
    const changed = new Set<string>();
    this.#journal.changed = changed;
    return { database: new ListDatabase(this.#path), changed, taken: 0 };
  }

  /** Takes in some of what is missing; answers whether nothing is any more. */
  #takeIn(made: MadeLists): boolean {
    const { database, changed, taken } = made;
    if (taken !== null) {
      const rows = this.#journal.sessionsAfter(taken, CHUNK);
      this.#write(database, rows);
      made.taken = rows.length < CHUNK ? null : (rows.at(-1) as NumberedRow).arrival;
      if (made.taken !== null) return false;
    }
    const ids = [...changed].slice(0, CHUNK);
    if (ids.length > 0) this.#write(database, this.#journal.sessionsOf(ids));
    for (const id of ids) changed.delete(id);
    return changed.size === 0;
  }

  #write(database: ListDatabase, rows: NumberedRow[]): void {
    database.write(
      rows.map(({ arrival, values }) => {
        const session = this.#tables.toStored("agent_state", values);
        const { session_id, agent_id, moniker, status, created_at, updated_at } = session;
        const needs = needsPerson(session) || this.#asking.has(session_id);
        const text = searchedText({ session_id, agent_id, moniker, text: beginningOf(session.result) });
        return [arrival, agent_id, toText(moniker), status, Number(needs), updated_at, created_at, text];
      }),
    );
  }

  #noteAsking(asking: string[], changed: Set<string>): void {
    if (asking.length === 0 && this.#asking.size === 0) return;
    for (const id of [...asking, ...this.#asking]) changed.add(id);
    this.#asking = new Set(asking);
  }

  /** In the order of the arrivals. */
  #rows(arrivals: number[]): Values[] {
    const byArrival = new Map(this.#journal.sessionsAt(arrivals).map(({ arrival, values }) => [arrival, values]));
    return arrivals.flatMap((arrival) => {
      const values = byArrival.get(arrival);
      return values ? [values] : [];
    });
  }

  #forget(): void {
    this.#journal.changed = null;
    this.#made?.database.close();
    this.#made = undefined;
    rmSync(this.#path, { force: true, recursive: true });
  }
}

const INDEXES: Readonly<Record<IndexName, string>> = {
  status: "(status",
  agent: "(agent_id, status",
  moniker: "(moniker, status",
  need: "(needs_person, status",
};

/** Each list has an index for each of its orders. Rows of a listed session are found by when it arrived. */
class ListDatabase {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    rmSync(path, { force: true, recursive: true });
    this.#database = new DatabaseSync(path);
    const indexes = Object.entries(INDEXES).flatMap(([name, columns]) => [
      `CREATE INDEX by_${name}_created_at ON sessions ${columns}, arrival)${name === "need" ? NEEDED : ""}`,
      `CREATE INDEX by_${name}_updated_at ON sessions ${columns}, updated_at, arrival)${name === "need" ? NEEDED : ""}`,
    ]);
    this.#database.exec(
      [
        // It is not needed after a crash.
        "PRAGMA journal_mode = OFF",
        "PRAGMA synchronous = OFF",
        "PRAGMA locking_mode = EXCLUSIVE",
        `CREATE TABLE sessions (arrival INTEGER PRIMARY KEY, agent_id TEXT NOT NULL, moniker TEXT NOT NULL, status TEXT NOT NULL,
         needs_person INTEGER NOT NULL, updated_at TEXT NOT NULL, created_at TEXT NOT NULL, text TEXT NOT NULL)`,
        ...indexes,
        `CREATE TABLE counts (kind TEXT, key TEXT, status TEXT, count INTEGER NOT NULL, PRIMARY KEY (kind, key, status)) WITHOUT ROWID`,
      ].join(";\n"),
    );
  }

  rows(sql: string, ...values: Value[]): Values[] {
    return this.#statement(sql).all(...values) as unknown as Values[];
  }

  /** Sessions as they are now, in place of what they were. */
  write(rows: readonly Values[]): void {
    if (rows.length === 0) return;
    const changes = new CountChanges();
    this.#database.exec("BEGIN");
    for (const row of rows) {
      const [before] = this.rows(SESSION_AT, row[0] as number);
      if (before) changes.add(before, -1);
      changes.add(row, 1);
      this.#statement(before ? UPDATE : INSERT).run(...(before ? [...row.slice(1), row[0] as Value] : row));
    }
    for (const change of changes.all()) this.#statement(COUNT).run(...change);
    this.#database.exec("COMMIT");
  }

  close(): void {
    this.#database.close();
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays(true);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** By how much counts change, added up. */
class CountChanges {
  readonly #byStatus = new Map<Value, Record<CountKey[0], Map<string, number>>>();

  add([, agent_id, moniker, status, needs]: Values, by: number): void {
    let kinds = this.#byStatus.get(status as string);
    if (!kinds) {
      kinds = { all: new Map(), agent: new Map(), moniker: new Map(), need: new Map() };
      this.#byStatus.set(status as string, kinds);
    }
    const add = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + by);
    add(kinds.all, "");
    add(kinds.agent, agent_id as string);
    add(kinds.moniker, moniker as string);
    if (needs) add(kinds.need, "");
  }

  *all(): Generator<[kind: string, key: string, status: Value, change: number]> {
    for (const [status, kinds] of this.#byStatus)
      for (const [kind, counts] of Object.entries(kinds))
        for (const [key, change] of counts) if (change !== 0) yield [kind, key, status, change];
  }
}

const NEEDED = " WHERE needs_person = 1";
const SESSION_AT =
  "SELECT arrival, agent_id, moniker, status, needs_person, updated_at FROM sessions WHERE arrival = ?";
const INSERT = `INSERT INTO sessions (arrival, agent_id, moniker, status, needs_person, updated_at, created_at, text)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const UPDATE = `UPDATE sessions SET agent_id = ?, moniker = ?, status = ?, needs_person = ?, updated_at = ?, created_at = ?, text = ?
  WHERE arrival = ?`;
const COUNT = `INSERT INTO counts (kind, key, status, count) VALUES (?, ?, ?, ?)
  ON CONFLICT (kind, key, status) DO UPDATE SET count = count + excluded.count`;

/** The arrivals of a page. Of each status the first ones are read along its index; rows are numbered as they are written, whatever clocks say. */
function pageOf(journal: Journal, database: ListDatabase, filter: SummaryFilter): number[] {
  const { sort = "created_at", after, statuses, limit, offset } = filter;
  const { parts, index } = listingOf(journal, filter);
  if (after) parts.push(beyond(journal, sort, after));
  const order = sort === "created_at" ? "arrival DESC" : "updated_at DESC, arrival DESC";
  const found: { arrival: number; updated_at: string }[] = [];
  const find = (from: string, conditions: Condition[]): void => {
    const { sql, values } = all(conditions);
    const page = `SELECT arrival, updated_at FROM sessions ${from} ${sql} ORDER BY ${order} LIMIT ?`;
    for (const [arrival, updated_at] of database.rows(page, ...values, offset + limit))
      found.push({ arrival: arrival as number, updated_at: updated_at as string });
  };
  if (index === null || (index === "status" && sort === "created_at" && !statuses))
    find("NOT INDEXED", statuses ? [...parts, among("status", statuses)] : parts);
  else
    for (const status of new Set(statuses ?? SESSION_STATUSES))
      find(`INDEXED BY by_${index}_${sort}`, [{ sql: "status = ?", values: [status] }, ...parts]);
  const byArrival = (a: { arrival: number }, b: { arrival: number }): number => b.arrival - a.arrival;
  found.sort(
    sort === "created_at"
      ? byArrival
      : (a, b) => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : byArrival(a, b)),
  );
  return found.slice(offset, offset + limit).map(({ arrival }) => arrival);
}

/** What fits a filter, its statuses aside, and along which index. */
function listingOf(
  journal: Journal,
  { agent_id, moniker, q, session_ids, needs_person, spawned_by }: SummaryFilter,
): Listing {
  const parts: Condition[] = [];
  const [kinds, keys]: [CountKey[0][], string[]] = [[], []];
  if (agent_id !== undefined) {
    parts.push({ sql: "agent_id = ?", values: [agent_id] });
    kinds.push("agent");
    keys.push(agent_id);
  }
  if (moniker !== undefined) {
    parts.push({ sql: "moniker = ?", values: [toText(moniker)] });
    kinds.push("moniker");
    keys.push(toText(moniker));
  }
  if (needs_person) {
    parts.push({ sql: "needs_person = 1", values: [] });
    kinds.push("need");
    keys.push("");
  }
  const known = [
    ...(session_ids ? [journal.arrivalsOf(session_ids)] : []),
    ...(spawned_by === undefined ? [] : [journal.arrivalsSpawnedBy(spawned_by)]),
  ];
  for (const arrivals of known) parts.push(among("arrival", arrivals));
  if (q !== undefined) parts.push({ sql: "instr(text, ?) > 0", values: [folded(q)] });
  const index = known.length > 0 ? null : INDEX_OF[kinds[0] ?? "all"];
  const isCounted = known.length === 0 && q === undefined && kinds.length < 2;
  return { parts, index, counted: isCounted ? [kinds[0] ?? "all", keys[0] ?? ""] : null };
}

const among = (column: string, values: readonly Value[]): Condition => ({
  sql: `${column} IN (SELECT value FROM json_each(?))`,
  values: [JSON.stringify(values)],
});

const all = (parts: Condition[]): Condition => ({
  sql: parts.length > 0 ? `WHERE ${parts.map(({ sql }) => sql).join(" AND ")}` : "",
  values: parts.flatMap(({ values }) => values),
});

const INDEX_OF: Readonly<Record<CountKey[0], IndexName>> = {
  all: "status",
  agent: "agent",
  moniker: "moniker",
  need: "need",
};

function beyond(journal: Journal, sort: SessionSort, { session_id, at }: ListPlace): Condition {
  const [arrival] = journal.arrivalsOf([session_id]);
  if (arrival === undefined) return { sql: `${sort} <= ?`, values: [at] };
  return sort === "created_at"
    ? { sql: "arrival < ?", values: [arrival] }
    : { sql: "(updated_at, arrival) < (?, ?)", values: [at, arrival] };
}

function countsOf(journal: Journal, database: ListDatabase, filter: SummaryFilter): SessionCounts {
  const { parts, index, counted } = listingOf(journal, filter);
  if (counted) return storedCounts(database, counted);
  const indexed = index === null || index === "status" ? "NOT INDEXED" : `INDEXED BY by_${index}_created_at`;
  const { sql, values } = all(parts);
  const most = filter.q === undefined ? "" : `LIMIT ${MOST_COUNTED}`;
  const fitting = `SELECT status FROM sessions ${indexed} ${sql} ${most}`;
  return toCounts(database.rows(`SELECT status, count(*) FROM (${fitting}) GROUP BY status`, ...values));
}

const sumOf = (counts: SessionCounts): number => Object.values(counts).reduce((sum, count) => sum + count, 0);

const storedCounts = (database: ListDatabase, [kind, key]: CountKey): SessionCounts =>
  toCounts(database.rows("SELECT status, count FROM counts WHERE kind = ? AND key = ?", kind, key));

function toCounts(rows: Values[]): SessionCounts {
  const counts = Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0])) as SessionCounts;
  for (const [status, count] of rows) counts[status as SessionStatus] = Number(count);
  return counts;
}
