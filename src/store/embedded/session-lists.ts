import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
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

/** `addedUpTo`: up to where existing sessions were added; null: all of them. */
type MadeLists = { database: ListDatabase; changed: Set<string>; addedUpTo: number | null };

/** Sessions added at a time, so that no commit waits long. */
const CHUNK = 200;
/** This many changed sessions are added even if nobody requests a list. */
const MOST_CHANGED = 5000;
/** Texts indexed at a time, and how many unindexed ones a search may scan. */
const TEXTS_AT_ONCE = 50;
const MOST_STALE = 500;
/** Matches of a search are counted up to this. */
const MOST_COUNTED = 2000;
/** Sessions since a time are counted up to this. */
const MOST_COUNTED_SINCE = 10_000;
const COUNTS_OF_AGENT = "SELECT status, count(*) FROM agent_state WHERE agent_id = ? GROUP BY status";
const FILE = "lists.tmp";

/**
 * An index database for lists of sessions: a page costs the same however many sessions there are.
 *
 * Every process rebuilds it when a list is first requested: nothing depends on it, no commit writes it, and no crash or damage
 * can leave it wrong. Sessions by id, or by who started them, are read from the journal directly.
 *
 * LISTING-1  A list is read after every session that changed since was added, under the same lock, so that it shows everything
 *            committed before the request and matches the rows it is read with.
 * LISTING-2  If it cannot be written, for example on a full disk, it is discarded, and the next list rebuilds it.
 * LISTING-3  A search matches the sessions' current texts. The text index only narrows the search; unindexed texts are all
 *            scanned. It is built in the background from the first search on.
 */
export class SessionLists {
  readonly #journal: Journal;
  readonly #tables: EmbeddedTables;
  readonly #folder: string;
  readonly #path: string;
  readonly #mutex = new Mutex();
  /** While set, the journal reports which sessions change. */
  #made: MadeLists | undefined;
  #isCatchingUp = false;
  #indexing: Promise<void> | undefined;
  #isClosed = false;
  /** Sessions with a question that their rows do not have. */
  #asking: ReadonlySet<string> = new Set();

  constructor(folder: string, journal: Journal, tables: EmbeddedTables) {
    this.#journal = journal;
    this.#tables = tables;
    this.#folder = folder;
    this.#path = join(folder, FILE);
    rmSync(this.#path, { force: true, recursive: true });
  }

  /** The ids of sessions in the list's order. */
  async ids(summaryFilter: SummaryFilter, asking: string[]): Promise<string[]> {
    const filter = await this.#withForks(summaryFilter, asking);
    if (isSelectedDirectly(filter) || isOrderedInJournal(filter)) {
      const { sql, values } = listClause(this.#journal, filter, asking);
      return this.#journal.query(`SELECT session_id FROM agent_state ${sql}`, ...values).map(([id]) => id as string);
    }
    return this.#read(asking, (database) => {
      const arrivals = database.page(toListing(this.#journal, filter));
      return this.#rows(arrivals).map(([id]) => id as string);
    });
  }

  async summaries(summaryFilter: SummaryFilter, asking: string[]): Promise<SummaryRows> {
    const filter = await this.#withForks(summaryFilter, asking);
    if (isSelectedDirectly(filter)) return summariesInJournal(this.#journal, filter, asking);
    const q = folded(filter.q ?? "");
    const summaries = await this.#read(asking, (database) => {
      const listing = toListing(this.#journal, filter);
      const { arrivals, counts, exact } =
        q === ""
          ? { arrivals: database.page(listing), ...database.countsOfPage(listing) }
          : database.search(q, listing);
      const total = exact ? totalOf(counts, filter) : atLeast(totalOf(counts, filter), arrivals.length, filter);
      return { rows: this.#rows(arrivals), total, counts, exact };
    });
    if (q !== "") this.#indexTexts();
    return summaries;
  }

  /** From the journal until lists exist: they are not built only for counting. */
  async counts(): Promise<SessionCounts> {
    if (!this.#made) return toCounts(this.#journal.query("SELECT status, count(*) FROM agent_state GROUP BY status"));
    return this.#read([...this.#asking], (database) => database.counts({}));
  }

  async agentCounts(agent_id: string): Promise<SessionCounts> {
    if (!this.#made) return toCounts(this.#journal.query(COUNTS_OF_AGENT, agent_id));
    return this.#read([...this.#asking], (database) => database.counts({ agent_id }));
  }

  /** Agents by id with their session counts. */
  agents(limit: number, offset: number): Promise<[agent_id: string, counts: SessionCounts][]> {
    return this.#read([...this.#asking], (database) =>
      database.agents(limit, offset).map((agent_id) => [agent_id, database.counts({ agent_id })]),
    );
  }

  /** Texts not indexed yet; null if there are no lists. */
  unindexedTexts(): number | null {
    return this.#made?.database.staleTexts() ?? null;
  }

  /** Called after every commit: bounds the set of changed sessions. */
  catchUp(): void {
    if (!this.#made || this.#made.changed.size < MOST_CHANGED || this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    this.#read([...this.#asking], () => {})
      .catch(() => {}) // LISTING-2
      .finally(() => (this.#isCatchingUp = false));
  }

  /** Waits for the read in progress, and leaves no file. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#indexing;
    await this.#mutex.run(async () => this.#discard());
  }

  /** Forks of a session as sessions that are named: the journal has no index of them. */
  async #withForks(filter: SummaryFilter, asking: string[]): Promise<SummaryFilter> {
    const { parent_session_id, session_ids, ...others } = filter;
    if (parent_session_id === undefined) return filter;
    const forks = await this.#read(asking, (database) => database.forks(parent_session_id));
    const named = session_ids && new Set(session_ids);
    return { ...others, session_ids: named ? forks.filter((id) => named.has(id)) : forks };
  }

  /** LISTING-1. */
  #read<Result>(asking: string[], read: (database: ListDatabase) => Result): Promise<Result> {
    return this.#mutex.run(async () => {
      try {
        const made = (this.#made ??= this.#make());
        this.#noteAsking(asking, made.changed);
        while (!this.#addMissing(made)) await new Promise(setImmediate);
        return read(made.database);
      } catch (error) {
        this.#discard(); // LISTING-2
        throw toStoreError(error, this.#folder);
      }
    });
  }

  #make(): MadeLists {
    const changed = new Set<string>();
    this.#journal.changed = changed;
    return { database: new ListDatabase(this.#path), changed, addedUpTo: 0 };
  }

  /** Adds some of what is missing; returns whether nothing is missing any more. */
  #addMissing(made: MadeLists): boolean {
    const { database, changed, addedUpTo } = made;
    if (addedUpTo !== null) {
      const rows = this.#journal.sessionsAfter(addedUpTo, CHUNK);
      this.#write(database, rows);
      made.addedUpTo = rows.length < CHUNK ? null : (rows.at(-1) as NumberedRow).arrival;
      if (made.addedUpTo !== null) return false;
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
        const { session_id, agent_id, moniker, status, created_at, updated_at, parent_session_id } = session;
        const needs_person = Number(needsPerson(session) || this.#asking.has(session_id));
        const text = searchedText({ session_id, agent_id, moniker, text: beginningOf(session.result) });
        const fork = parent_session_id === null ? null : { session_id, parent_session_id };
        return {
          arrival,
          agent_id,
          moniker: toText(moniker),
          status,
          needs_person,
          updated_at,
          created_at,
          text,
          fork,
        };
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

  /** LISTING-3. Not for the few texts that change between two searches. */
  #indexTexts(): void {
    if (this.#indexing || this.#isClosed || (this.unindexedTexts() ?? 0) <= MOST_STALE) return;
    this.#indexing = this.#indexAllTexts().finally(() => (this.#indexing = undefined));
  }

  /** Leaves half of the time to others. */
  async #indexAllTexts(): Promise<void> {
    for (let isDone = false; !isDone && !this.#isClosed; ) {
      const begun = performance.now();
      isDone = await this.#mutex.run(async () => this.#indexSomeTexts());
      await sleep(performance.now() - begun);
    }
  }

  #indexSomeTexts(): boolean {
    try {
      return this.#made?.database.indexTexts(TEXTS_AT_ONCE) ?? true;
    } catch {
      this.#discard(); // LISTING-2
      return true;
    }
  }

  #discard(): void {
    this.#journal.changed = null;
    this.#made?.database.close();
    this.#made = undefined;
    rmSync(this.#path, { force: true, recursive: true });
  }
}

type SqlCondition = { sql: string; values: Value[] };

const among = (column: string, values: readonly Value[]): SqlCondition => ({
  sql: `${column} IN (SELECT value FROM json_each(?))`,
  values: [JSON.stringify(values)],
});

const all = (parts: SqlCondition[]): SqlCondition => ({
  sql: parts.length > 0 ? `WHERE ${parts.map(({ sql }) => sql).join(" AND ")}` : "",
  values: parts.flatMap(({ values }) => values),
});

const totalOf = (counts: SessionCounts, { statuses }: Pick<SummaryFilter, "statuses">): number =>
  [...new Set(statuses ?? SESSION_STATUSES)].reduce((sum, status) => sum + counts[status], 0);

/** For a list that was not fully counted: what its page shows, and one more if the page is full. */
const atLeast = (counted: number, shown: number, { offset, limit }: SummaryFilter): number =>
  shown === 0 ? counted : Math.max(counted, offset + shown + (shown === limit ? 1 : 0));

function toCounts(rows: Values[]): SessionCounts {
  const counts = Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0])) as SessionCounts;
  for (const [status, count] of rows) counts[status as SessionStatus] = Number(count);
  return counts;
}

// Lists read from the journal.

/** Whether sessions are selected by id, or by who started them. */
const isSelectedDirectly = ({ session_ids, spawned_by }: SummaryFilter): boolean =>
  session_ids !== undefined || spawned_by !== undefined;

/** Whether the journal has an index for such a page; it has none for the counts. */
const isOrderedInJournal = ({ sort, since, needs_person, q, moniker, agent_id, statuses }: SummaryFilter): boolean =>
  sort !== "updated_at" &&
  since === undefined &&
  !needs_person &&
  q === undefined &&
  moniker === undefined &&
  (statuses === undefined || (statuses.length === 1 && agent_id === undefined));

function summariesInJournal(journal: Journal, filter: SummaryFilter, asking: string[]): SummaryRows {
  const page = listClause(journal, filter, asking);
  const rows = journal.snapshots("agent_state", page.sql, ...page.values);
  const fitting = all(journalConditions(filter, asking));
  const counted = `SELECT status, count(*) FROM agent_state ${fitting.sql} GROUP BY status`;
  const counts = toCounts(journal.query(counted, ...fitting.values));
  return { rows, total: totalOf(counts, filter), counts, exact: true };
}

/** The end of a statement that reads a page of `agent_state`. Rows are numbered in writing order, whatever the clocks say. */
function listClause(journal: Journal, filter: SummaryFilter, asking: string[]): SqlCondition {
  const { sort = "created_at", after, statuses, limit, offset } = filter;
  const parts = journalConditions(filter, asking);
  const [status, ...others] = statuses ?? [];
  if (status !== undefined && others.length === 0 && !isSelectedDirectly(filter))
    parts.push({ sql: "status = ?", values: [status] });
  else if (statuses) parts.push(among("+status", statuses));
  if (after) parts.push(beyond(sort, placeOf(journal, after)));
  const { sql, values } = all(parts);
  return { sql: `${sql} ORDER BY ${ORDERS[sort]} LIMIT ? OFFSET ?`, values: [...values, limit, offset] };
}

function journalConditions(
  { agent_id, moniker, q, session_ids, needs_person, spawned_by, since, sort = "created_at" }: SummaryFilter,
  asking: string[],
): SqlCondition[] {
  const parts: SqlCondition[] = [];
  // The plus keeps SQLite from scanning all sessions of the agent for a few known ones.
  const agent = session_ids || spawned_by !== undefined ? "+agent_id" : "agent_id";
  if (agent_id !== undefined) parts.push({ sql: `${agent} = ?`, values: [agent_id] });
  if (moniker !== undefined) parts.push({ sql: "moniker = ?", values: [toText(moniker)] });
  if (spawned_by !== undefined)
    parts.push({
      sql: "session_id IN (SELECT session_id FROM spawned_sessions WHERE spawner_id = ?)",
      values: [spawned_by],
    });
  if (session_ids) parts.push(among("session_id", session_ids));
  if (since !== undefined) parts.push({ sql: `${sort} >= ?`, values: [since] });
  if (q !== undefined)
    parts.push({ sql: "instr(searched_text(session_id, agent_id, moniker, result), ?) > 0", values: [folded(q)] });
  if (needs_person) {
    const asks = among("session_id", asking);
    const needs = "needs_person(status, stop_reason, question, pause_reason)";
    parts.push({ sql: `(${needs} OR ${asks.sql})`, values: asks.values });
  }
  return parts;
}

// Lists with indexes.

const ORDERS: Readonly<Record<SessionSort, string>> = {
  created_at: "arrival DESC",
  updated_at: "updated_at DESC, arrival DESC",
};

/** A list's cursor; `arrival` is null if that session is unknown. */
type Place = { arrival: number | null; at: string };
type Order = { sort: SessionSort; place: Place | undefined; limit: number; offset: number };
type Filter = Pick<SummaryFilter, "agent_id" | "moniker" | "needs_person" | "statuses" | "since" | "sort">;
type Listing = Filter & Order;

const placeOf = (journal: Journal, { session_id, at }: ListPlace): Place => ({
  arrival: journal.arrivalOf(session_id),
  at,
});

function toListing(journal: Journal, filter: SummaryFilter): Listing {
  const { sort = "created_at", after, q: _, session_ids: __, spawned_by: ___, ...others } = filter;
  return { ...others, sort, place: after && placeOf(journal, after) };
}

function beyond(sort: SessionSort, { arrival, at }: Place): SqlCondition {
  if (arrival === null) return { sql: `${sort} <= ?`, values: [at] };
  return sort === "created_at"
    ? { sql: "arrival < ?", values: [arrival] }
    : { sql: "(updated_at, arrival) < (?, ?)", values: [at, arrival] };
}

/** The same for a row in memory. */
function isBeyond(row: ListedSession, { sort, place }: Order): boolean {
  if (!place) return true;
  const { arrival, at } = place;
  if (arrival === null) return row[sort] <= at;
  if (sort === "created_at") return row.arrival < arrival;
  return row.updated_at < at || (row.updated_at === at && row.arrival < arrival);
}

type ListedSession = { arrival: number; status: SessionStatus; created_at: string; updated_at: string };

/** The arrivals of a page, cut from all matches. */
function cutPage(matches: ListedSession[], { sort, limit, offset }: Order): number[] {
  const byArrival = (a: ListedSession, b: ListedSession): number => b.arrival - a.arrival;
  const byUpdate = (a: ListedSession, b: ListedSession): number =>
    a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : byArrival(a, b);
  return matches
    .sort(sort === "created_at" ? byArrival : byUpdate)
    .slice(offset, offset + limit)
    .map(({ arrival }) => arrival);
}

type ListRow = ListedSession & {
  agent_id: string;
  moniker: string;
  needs_person: number;
  text: string;
  fork: { session_id: string; parent_session_id: string } | null;
};
type SearchPage = { arrivals: number[]; counts: SessionCounts; exact: boolean };

/** Each list has an index per sort order, grouped by status. */
const INDEXES = {
  status: { columns: "status", rows: "" },
  agent: { columns: "agent_id, status", rows: "" },
  moniker: { columns: "moniker, status", rows: "" },
  need: { columns: "needs_person, status", rows: "WHERE needs_person = 1" },
} as const;
type IndexName = keyof typeof INDEXES;

/**
 * Sessions by arrival, with their list fields and the searched text.
 *
 * `counts` has them by agent and moniker, by moniker, and in total: '' stands for all, '=x' for x. `texts` has the trigrams of
 * every text that is not stale, and `parts` lists them.
 */
const CREATE = [
  // It is not needed after a crash.
  "PRAGMA journal_mode = OFF",
  "PRAGMA synchronous = OFF",
  "PRAGMA locking_mode = EXCLUSIVE",
  `CREATE TABLE sessions (arrival INTEGER PRIMARY KEY, agent_id TEXT NOT NULL, moniker TEXT NOT NULL, status TEXT NOT NULL,
     needs_person INTEGER NOT NULL, updated_at TEXT NOT NULL, created_at TEXT NOT NULL, is_stale INTEGER NOT NULL, text TEXT NOT NULL)`,
  ...Object.entries(INDEXES).flatMap(([name, { columns, rows }]) => [
    `CREATE INDEX by_${name}_created_at ON sessions (${columns}, arrival) ${rows}`,
    `CREATE INDEX by_${name}_updated_at ON sessions (${columns}, updated_at, arrival) ${rows}`,
  ]),
  "CREATE TABLE forks (parent_session_id TEXT, session_id TEXT, PRIMARY KEY (parent_session_id, session_id)) WITHOUT ROWID",
  "CREATE INDEX stale_texts ON sessions (arrival) WHERE is_stale = 1",
  `CREATE TABLE counts (agent_key TEXT, moniker_key TEXT, status TEXT, needs_person INTEGER, count INTEGER NOT NULL,
     PRIMARY KEY (agent_key, moniker_key, status, needs_person)) WITHOUT ROWID`,
  `CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', contentless_delete = 1, detail = none,
     tokenize = 'trigram case_sensitive 1')`,
  "CREATE VIRTUAL TABLE parts USING fts5vocab (texts, instance)",
];

const LISTED = "SELECT s.arrival, s.status, s.created_at, s.updated_at FROM";
const BEFORE = "SELECT agent_id, moniker, status, needs_person FROM sessions WHERE arrival = ?";
const INSERT = `INSERT INTO sessions (agent_id, moniker, status, needs_person, updated_at, created_at, text, arrival, is_stale)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)`;
const UPDATE = `UPDATE sessions SET agent_id = ?1, moniker = ?2, status = ?3, needs_person = ?4, updated_at = ?5, created_at = ?6,
  is_stale = is_stale OR text <> ?7, text = ?7 WHERE arrival = ?8`;
const INSERT_FORK = "INSERT OR IGNORE INTO forks (parent_session_id, session_id) VALUES (?, ?)";
const FORKS = "SELECT session_id FROM forks WHERE parent_session_id = ?";
const COUNT = `INSERT INTO counts (agent_key, moniker_key, status, needs_person, count) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (agent_key, moniker_key, status, needs_person) DO UPDATE SET count = count + excluded.count`;
const AGENTS = `SELECT substr(agent_key, 2) FROM counts WHERE agent_key > '' GROUP BY agent_key HAVING sum(count) > 0
  ORDER BY agent_key LIMIT ? OFFSET ?`;
const SOME_STALE = "SELECT arrival, text FROM sessions INDEXED BY stale_texts WHERE is_stale = 1 LIMIT ?";

class ListDatabase {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    rmSync(path, { force: true, recursive: true });
    this.#database = new DatabaseSync(path);
    this.#database.exec(CREATE.join(";\n"));
  }

  /** Inserts or replaces sessions. */
  write(rows: readonly ListRow[]): void {
    if (rows.length === 0) return;
    const changes = new CountChanges();
    this.#database.exec("BEGIN");
    for (const row of rows) {
      const { arrival, agent_id, moniker, status, needs_person, updated_at, created_at, text, fork } = row;
      const [before] = this.#rows(BEFORE, arrival);
      if (before) changes.add(before, -1);
      changes.add([agent_id, moniker, status, needs_person], 1);
      const values = [agent_id, moniker, status, needs_person, updated_at, created_at, text, arrival];
      this.#statement(before ? UPDATE : INSERT).run(...values);
      if (fork && !before) this.#statement(INSERT_FORK).run(fork.parent_session_id, fork.session_id);
    }
    for (const change of changes.all()) this.#statement(COUNT).run(...change);
    this.#database.exec("COMMIT");
  }

  /** A page's arrivals: of each status as many as may be on it, bounded by its count. */
  page(listing: Listing): number[] {
    const counts = this.counts(listing);
    return this.#walk(listing, [], (status) => counts[status]);
  }

  counts({ agent_id, moniker, needs_person }: Filter): SessionCounts {
    const parts = [{ sql: "agent_key = ?", values: [keyOf(agent_id)] }];
    if (agent_id === undefined || moniker !== undefined)
      parts.push({ sql: "moniker_key = ?", values: [keyOf(moniker === undefined ? undefined : toText(moniker))] });
    if (needs_person) parts.push({ sql: "needs_person = 1", values: [] });
    const { sql, values } = all(parts);
    return toCounts(this.#rows(`SELECT status, sum(count) FROM counts ${sql} GROUP BY status`, ...values));
  }

  /** Sessions since a time are counted one by one, up to a limit. */
  countsOfPage(listing: Listing): { counts: SessionCounts; exact: boolean } {
    if (listing.since === undefined) return { counts: this.counts(listing), exact: true };
    const { sql, values } = all(conditionsOf(listing));
    const index = this.#indexFor(listing);
    const from = `sessions AS s ${index === "status" ? "" : `INDEXED BY by_${index}_${listing.sort}`}`;
    const rows = this.#rows(
      `SELECT status, count(*) FROM (SELECT s.status FROM ${from} ${sql} LIMIT ?) GROUP BY status`,
      ...values,
      MOST_COUNTED_SINCE,
    );
    const counts = toCounts(rows);
    return { counts, exact: totalOf(counts, {}) < MOST_COUNTED_SINCE };
  }

  forks(parent_session_id: string): string[] {
    return this.#rows(FORKS, parent_session_id).map(([session_id]) => session_id as string);
  }

  agents(limit: number, offset: number): string[] {
    return this.#rows(AGENTS, limit, offset).map(([agent_id]) => agent_id as string);
  }

  /** LISTING-3. If very many sessions match, they are not counted, and found by walking the list. */
  search(q: string, listing: Listing): SearchPage {
    const contains: SqlCondition = { sql: "instr(s.text, ?) > 0", values: [q] };
    const conditions = [contains, ...conditionsOf(listing)];
    const stale = this.#listed("sessions AS s INDEXED BY stale_texts", [IS_STALE, ...conditions], MOST_COUNTED);
    const others = this.#indexedMatches(q, listing, conditions, MOST_COUNTED - stale.length);
    const matches = [...stale, ...others];
    const counts = countMatches(matches);
    if (matches.length >= MOST_COUNTED)
      return { arrivals: this.#walk(listing, [contains], () => Number.POSITIVE_INFINITY), counts, exact: false };
    const isListed = (row: ListedSession): boolean =>
      (listing.statuses?.includes(row.status) ?? true) && isBeyond(row, listing);
    return { arrivals: cutPage(matches.filter(isListed), listing), counts, exact: true };
  }

  /** Indexes some sessions' texts; returns whether these were the last. */
  indexTexts(limit: number): boolean {
    const stale = this.#rows(SOME_STALE, limit) as [number, string][];
    this.#database.exec("BEGIN");
    for (const [arrival, text] of stale) {
      // A trigram begins at each character, including the last two.
      this.#statement("INSERT OR REPLACE INTO texts (rowid, text) VALUES (?, ?)").run(arrival, `${indexable(text)}  `);
      this.#statement("UPDATE sessions SET is_stale = 0 WHERE arrival = ?").run(arrival);
    }
    this.#database.exec("COMMIT");
    return stale.length < limit;
  }

  staleTexts(): number {
    const count = "SELECT count(*) FROM sessions INDEXED BY stale_texts WHERE is_stale = 1";
    return Number(this.#rows(count)[0]?.[0]);
  }

  close(): void {
    this.#database.close();
  }

  /** Along the list's index, per status; or by arrival if all are listed. */
  #walk(listing: Listing, others: SqlCondition[], most: (status: SessionStatus) => number): number[] {
    const { sort, place, statuses, limit, offset } = listing;
    const parts = [...others, ...conditionsOf(listing), ...(place ? [beyond(sort, place)] : [])];
    const index = this.#indexFor(listing);
    const end = offset + limit;
    if (index === "status" && sort === "created_at" && !statuses)
      return cutPage(this.#listed("sessions AS s NOT INDEXED", parts, end, ORDERS[sort]), listing);
    const listed: ListedSession[] = [];
    for (const status of new Set(statuses ?? SESSION_STATUSES)) {
      const count = Math.min(end, most(status));
      const ofStatus = [{ sql: "status = ?", values: [status] }, ...parts];
      const from = `sessions AS s INDEXED BY by_${index}_${sort}`;
      if (count > 0) listed.push(...this.#listed(from, ofStatus, count, ORDERS[sort]));
    }
    return cutPage(listed, listing);
  }

  /** The index with the fewest sessions. */
  #indexFor({ agent_id, moniker, needs_person }: Filter): IndexName {
    const candidates: [IndexName, Filter][] = [];
    if (agent_id !== undefined) candidates.push(["agent", { agent_id }]);
    if (moniker !== undefined) candidates.push(["moniker", { moniker }]);
    if (needs_person) candidates.push(["need", { needs_person }]);
    if (candidates.length < 2) return candidates[0]?.[0] ?? "status";
    const sizes = candidates.map(([name, filter]) => ({ name, size: totalOf(this.counts(filter), {}) }));
    return sizes.reduce((least, next) => (next.size < least.size ? next : least)).name;
  }

  /** Among indexed texts. Trigrams in very many texts do not help: then the whole list is scanned. */
  #indexedMatches(q: string, listing: Listing, conditions: SqlCondition[], limit: number): ListedSession[] {
    const parts = partsOf(indexable(q));
    const fitting = [IS_INDEXED, ...conditions];
    if (parts.length > 0) {
      const match = {
        sql: "texts MATCH ?",
        values: [parts.map((part) => `"${part.replaceAll('"', '""')}"`).join(" ")],
      };
      return this.#listed("texts CROSS JOIN sessions AS s ON s.arrival = texts.rowid", [match, ...fitting], limit);
    }
    const beginning = "SELECT DISTINCT doc FROM parts WHERE term >= ? AND term <= ? LIMIT ?";
    const most = 2 * MOST_COUNTED;
    const arrivals = this.#rows(beginning, indexable(q), `${indexable(q)}${LAST}${LAST}`, most).map(
      ([doc]) => doc as number,
    );
    if (arrivals.length < most) return this.#listed("sessions AS s", [among("s.arrival", arrivals), ...fitting], limit);
    const index = this.#indexFor(listing);
    return this.#listed(
      `sessions AS s ${index === "status" ? "NOT INDEXED" : `INDEXED BY by_${index}_created_at`}`,
      fitting,
      limit,
    );
  }

  #listed(from: string, parts: SqlCondition[], limit: number, order?: string): ListedSession[] {
    const { sql, values } = all(parts);
    const rows = this.#rows(`${LISTED} ${from} ${sql} ${order ? `ORDER BY ${order}` : ""} LIMIT ?`, ...values, limit);
    return rows.map(([arrival, status, created_at, updated_at]) => ({
      arrival: arrival as number,
      status: status as SessionStatus,
      created_at: created_at as string,
      updated_at: updated_at as string,
    }));
  }

  #rows(sql: string, ...values: Value[]): Values[] {
    return this.#statement(sql).all(...values) as unknown as Values[];
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

const IS_STALE: SqlCondition = { sql: "s.is_stale = 1", values: [] };
const IS_INDEXED: SqlCondition = { sql: "s.is_stale = 0", values: [] };
const LAST = "\u{10ffff}";

const keyOf = (id: string | undefined): string => (id === undefined ? "" : `=${id}`);

/** Without statuses. */
function conditionsOf({ agent_id, moniker, needs_person, since, sort = "created_at" }: Filter): SqlCondition[] {
  const parts: SqlCondition[] = [];
  if (agent_id !== undefined) parts.push({ sql: "s.agent_id = ?", values: [agent_id] });
  if (moniker !== undefined) parts.push({ sql: "s.moniker = ?", values: [toText(moniker)] });
  if (needs_person) parts.push({ sql: "s.needs_person = 1", values: [] });
  if (since !== undefined) parts.push({ sql: `s.${sort} >= ?`, values: [since] });
  return parts;
}

function countMatches(matches: ListedSession[]): SessionCounts {
  const counts = toCounts([]);
  for (const { status } of matches) counts[status] += 1;
  return counts;
}

/** SQLite's index cannot hold noncharacters. */
const indexable = (text: string): string => text.toWellFormed().replaceAll(/[\0\ufffe\uffff]/g, "\ufffd");

/** The trigrams of a search; none if it is shorter. */
function partsOf(q: string): string[] {
  const characters = Array.from(q).slice(0, LONGEST_QUERY);
  return [...new Set(characters.slice(2).map((_, at) => characters.slice(at, at + 3).join("")))];
}
const LONGEST_QUERY = 60;

/** Accumulated changes of counts. */
class CountChanges {
  readonly #changes = new Map<string, { key: Values; change: number }>();

  add([agent_id, moniker, status, needs_person]: Values, by: number): void {
    const [agent, ofMoniker] = [keyOf(agent_id as string), keyOf(moniker as string)];
    for (const [agent_key, moniker_key] of [
      [agent, ofMoniker],
      ["", ofMoniker],
      ["", ""],
    ] as const) {
      const key = [agent_key, moniker_key, status as Value, needs_person as Value];
      const name = JSON.stringify(key);
      const counted = this.#changes.get(name);
      if (counted) counted.change += by;
      else this.#changes.set(name, { key, change: by });
    }
  }

  *all(): Generator<Values> {
    for (const { key, change } of this.#changes.values()) if (change !== 0) yield [...key, change];
  }
}
