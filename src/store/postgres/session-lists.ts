import { SESSION_STATUSES, type SessionStatus } from "../../domain/session.ts";
import { beginningOf, searchedText } from "../../domain/session-summary.ts";
import type { ListPlace, Page, Pruned, SessionSort, StoreCounts, SummaryFilter } from "../store.ts";
import type { Parameter, Pool, Row } from "./connections.ts";
import { fromArrays, toArrays } from "./single-row-statements.ts";
import { arrayOf, fromJson, fromText, type InputColumn, type Scalar, toText } from "./tables.ts";

export type SessionCounts = StoreCounts["sessions"];
export type ListFilter = Omit<SummaryFilter, "q">;
/** One more condition on `agent_state s`. */
type Condition = (values: Values) => string;

/** The values of a statement, in the order of their parameters. */
export class Values {
  readonly list: Parameter[] = [];

  /** Adds a value and returns its parameter. */
  add(value: Parameter): string {
    this.list.push(value);
    return `$${this.list.length}`;
  }
}

type WalkedPage = { ids: string[]; statuses: SessionStatus[]; isWhole: boolean };

const pageFrom = (rows: readonly Row[]): WalkedPage => ({
  ids: rows.map((row) => fromText(row["session_id"] as string)),
  statuses: rows.map((row) => row["status"] as SessionStatus),
  isWhole: false,
});

/** Sessions are numbered as they are inserted, so the order of creation does not depend on clocks. */
const ORDERS: Readonly<Record<SessionSort, string>> = {
  created_at: "s.number desc",
  // The period comes first because the index is on it: see migration 0007.
  updated_at: "s.updated_period desc, s.updated_at desc, s.number desc",
};
const PERIOD_MS = 10_000;

/**
 * Pages of lists, read along indexes, so that the number of sessions does not matter.
 *
 * LISTS-1  A list by creation is read along an index whose first columns are the list's equality conditions: one index range for
 *     each status, merged. So only rows that are shown are read, apart from the offset.
 * LISTS-2  The database keeps counts with each commit: `session_counts`, plus the changes appended to `session_count_changes`
 *     since. Both are read in one statement, so the sum is exact.
 */
export class SessionLists {
  readonly #pool: Pick<Pool, "query">;

  constructor(pool: Pick<Pool, "query">) {
    this.#pool = pool;
  }

  /** The ids of a page, in order. */
  async page(filter: ListFilter): Promise<string[]> {
    const values = new Values();
    const page = await this.pageOf("agent_state", filter, values, conditions(filter, values));
    const rows = await this.#pool.query(page, ...values.list);
    return rows.map((row) => fromText(row["session_id"] as string));
  }

  /**
   * A page with one more condition that no index supports: rows are checked until the page is full, at most `most` of each index
   * range. `isWhole` tells that a page that is not full is complete.
   */
  async walk(filter: ListFilter, most: number, condition: Condition): Promise<WalkedPage> {
    const { sort = "created_at", limit, offset } = filter;
    const order = ORDERS[sort];
    const values = new Values();
    const windows = await this.#windows(filter, most, values);
    const counted = values.list.length;
    const fits = condition(values);
    const reach = values.add(limit + offset);
    const arms = windows.map(
      (window) => `(select s.* from ${window} s where ${fits} order by ${order} limit ${reach})`,
    );
    const rows = await this.#pool.query(
      `select s.session_id, s.status from (${arms.join(" union all ")}) s order by ${order} limit ${values.add(limit)} offset ${values.add(offset)}`,
      ...values.list,
    );
    const page = pageFrom(rows);
    if (page.ids.length === limit) return page;
    const [seen] = await this.#pool.query(
      `select max(w.count) as count from (${windows.map((window) => `select count(*) from ${window} s`).join(" union all ")}) w`,
      ...values.list.slice(0, counted),
    );
    return { ...page, isWhole: Number(seen?.["count"]) < most };
  }

  async #windows(filter: ListFilter, most: number, values: Values): Promise<string[]> {
    const { sort = "created_at", after } = filter;
    const common = conditions(filter, values);
    if (after) common.push(beyond(sort, await this.#place(after), values));
    const limit = values.add(most);
    return stretchesOf(filter, values).map(
      (stretch) => `(select s.session_id, s.status, s.number, s.updated_period, s.updated_at from agent_state s
        ${toWhere([...common, ...stretch])} order by ${ORDERS[sort]} limit ${limit})`,
    );
  }

  /** The statement for a page of a table whose sessions meet all other conditions. */
  async pageOf(table: string, filter: ListFilter, values: Values, common: readonly string[] = []): Promise<string> {
    const { limit, offset, sort = "created_at", after } = filter;
    const order = ORDERS[sort];
    const places = after ? [beyond(sort, await this.#place(after), values)] : [];
    const reach = values.add(limit + offset);
    const arms = stretchesOf(filter, values).map(
      (stretch) => `(select s.session_id, s.number, s.updated_period, s.updated_at from ${table} s
        ${toWhere([...common, ...places, ...stretch])} order by ${order} limit ${reach})`,
    );
    return `select s.session_id from (${arms.join(" union all ")}) s order by ${order}
      limit ${values.add(limit)} offset ${values.add(offset)}`;
  }

  /** LISTS-2. By status. */
  async counts({ agent_id, moniker, needs_person }: Omit<ListFilter, keyof Page>): Promise<SessionCounts> {
    const values = new Values();
    const kept: string[] = [];
    const changed: string[] = [];
    if (needs_person) for (const list of [kept, changed]) list.push("needs_person");
    if (agent_id !== undefined) changed.push(`agent_id = ${values.add(toText(agent_id))}`);
    if (moniker !== undefined) changed.push(`moniker = ${values.add(toText(moniker))}`);
    kept.push(`agent_key = ${values.add(keyOf(agent_id))}`);
    // An agent's counts are not kept for all monikers together: it has few monikers.
    if (agent_id === undefined || moniker !== undefined) kept.push(`moniker_key = ${values.add(keyOf(moniker))}`);
    const rows = await this.#pool.query(
      `select status, sum(count)::bigint as count from (
         select status, count from session_counts ${toWhere(kept)}
         union all select status, change from session_count_changes ${toWhere(changed)}) c group by status`,
      ...values.list,
    );
    return toCounts(rows);
  }

  async #place({ session_id, at }: ListPlace): Promise<Place> {
    const [row] = await this.#pool.query("select number from agent_state where session_id = $1", toText(session_id));
    return { number: row ? Number(row["number"]) : null, at };
  }
}

const noCounts = (): SessionCounts =>
  Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0])) as SessionCounts;

function countsOf(statuses: readonly SessionStatus[]): SessionCounts {
  const counts = noCounts();
  for (const status of statuses) counts[status] += 1;
  return counts;
}

/** Rows of `status` and `count`. */
export function toCounts(rows: readonly Row[]): SessionCounts {
  const counts = noCounts();
  for (const { status, count } of rows) counts[status as SessionStatus] = Number(count);
  return counts;
}

/** The sum over some statuses, or over all. */
export const totalOf = (counts: SessionCounts, statuses: readonly SessionStatus[] = SESSION_STATUSES): number =>
  [...new Set(statuses)].reduce((sum, status) => sum + counts[status], 0);

const keyOf = (name: string | undefined): string => (name === undefined ? "" : `=${toText(name)}`);

/** A filter's conditions, except for statuses. */
export function conditions(
  {
    agent_id,
    moniker,
    session_ids,
    needs_person,
    spawned_by,
    parent_session_id,
    since,
    sort = "created_at",
  }: ListFilter,
  values: Values,
): string[] {
  const all: string[] = [];
  if (agent_id !== undefined) all.push(`s.agent_id = ${values.add(toText(agent_id))}`);
  if (moniker !== undefined) all.push(`s.moniker = ${values.add(toText(moniker))}`);
  if (session_ids) all.push(`s.session_id = any (${values.add(arrayOf(session_ids.map(toText)))}::text[])`);
  if (needs_person) all.push("s.needs_person");
  if (spawned_by !== undefined) all.push(`s.spawner_id = ${values.add(toText(spawned_by))}`);
  if (parent_session_id !== undefined) all.push(`s.parent_session_id = ${values.add(toText(parent_session_id))}`);
  if (since !== undefined) all.push(`s.${sort} >= ${values.add(since)}::timestamptz`);
  if (since !== undefined && sort === "updated_at")
    all.push(`s.updated_period >= ${values.add(Math.floor(Date.parse(since) / PERIOD_MS))}::bigint`);
  return all;
}

/** Whether the sessions are named one by one, or by the one that they came from. */
export const isOfFew = ({ session_ids, spawned_by, parent_session_id }: ListFilter): boolean =>
  session_ids !== undefined || spawned_by !== undefined || parent_session_id !== undefined;

export const toWhere = (all: readonly string[]): string => (all.length > 0 ? `where ${all.join(" and ")}` : "");

/** LISTS-1. The conditions of each index range. */
function stretchesOf(filter: ListFilter, values: Values): string[][] {
  const { statuses, sort, agent_id, moniker, needs_person } = filter;
  if (statuses?.length === 0) return [["false"]];
  const hasIndexWithStatus = sort !== "updated_at" && !needs_person && !isOfFew(filter);
  const isOfMoniker = moniker !== undefined && agent_id === undefined;
  const apart = hasIndexWithStatus ? (statuses ?? (isOfMoniker ? SESSION_STATUSES : undefined)) : undefined;
  if (apart) return [...new Set(apart)].map((status) => [`s.status = ${values.add(status)}`]);
  return [statuses ? [`s.status = any (${values.add(arrayOf(statuses))}::text[])`] : []];
}

/** `number` is null if the session is gone. */
type Place = { number: number | null; at: string };

function beyond(sort: SessionSort, { number, at }: Place, values: Values): string {
  if (sort === "created_at")
    return number === null
      ? `s.created_at <= ${values.add(at)}::timestamptz`
      : `s.number < ${values.add(number)}::bigint`;
  const period = `s.updated_period <= ${values.add(Math.floor(Date.parse(at) / PERIOD_MS))}::bigint`;
  const time = `${values.add(at)}::timestamptz`;
  return number === null
    ? `${period} and s.updated_at <= ${time}`
    : `${period} and (s.updated_at, s.number) < (${time}, ${values.add(number)}::bigint)`;
}

/** See `SessionSummaries`. */
export type FoundSessions = { session_ids: string[]; total: number; counts: SessionCounts; exact: boolean };

/** How many sessions are sampled to decide how to search: the newest, and any others. */
const NEWEST = 200;
const OTHERS = 100;
/** How long the sample of others is kept, in milliseconds. */
const OTHERS_MS = 60_000;
const STALE_PAGE = 2000;
/** If more matches than this are expected, they are not counted. */
const MOST_COUNTED = 4000;
/** By how much the estimate of rows to walk is multiplied. */
const MARGIN = 3;
/** How many parts of the text are looked up in the index: the rarest ones leave few sessions to check. */
const MOST_PARTS = 4;

/** Only the beginning of a text result is read: as much as lists show and search. */
export const RESULT_BEGINNING = `case when jsonb_typeof(s.result) = 'string' then to_jsonb(left(s.result #>> '{}', 301)) else s.result end as result`;
/** The columns that a session's searched text is made from. */
const TEXT_COLUMNS = `s.session_id, s.number, s.revision, s.agent_id, s.moniker, ${RESULT_BEGINNING}`;

/**
 * Sessions by a part of their text.
 *
 * SEARCH-1  `session_search` has each session's text as of a while ago, with an index of its parts. A trigger records sessions whose
 *     text may have changed since in `session_search_stale`; those few are read from their rows. So results are exact although a
 *     step updates no text index.
 * SEARCH-2  The stale ones are read first. A session that becomes stale after that is found by its earlier text.
 * SEARCH-3  If there are many matches, the page is found by walking along the list; then they are not counted, and the answer says so.
 */
export class SessionSearch {
  readonly #pool: Pick<Pool, "query">;
  readonly #lists: SessionLists;
  #others: { texts: string[]; until: number } = { texts: [], until: 0 };

  constructor(pool: Pick<Pool, "query">, lists: SessionLists) {
    this.#pool = pool;
    this.#lists = lists;
  }

  /** `text` is folded and not empty. */
  async find(filter: ListFilter, text: string): Promise<FoundSessions> {
    const searched = storable(text);
    const [stale, sample] = await Promise.all([this.#stale(searched), this.#sample(searched)]); // SEARCH-2
    const most = rowsToWalk(sample, filter);
    const walked = most === null ? null : await this.#walk(filter, searched, stale, most);
    return walked ?? this.#findAll(filter, searched, stale, sample.rarest);
  }

  /** Usually few; after a migration all, until they are indexed. */
  async #stale(searched: string): Promise<Stale> {
    const stale: Stale = { all: [], matching: [] };
    for (let last = ""; ; ) {
      const rows = await this.#pool.query(
        `select ${TEXT_COLUMNS} from session_search_stale d join agent_state s on s.session_id = d.session_id
         where d.session_id > $1 order by d.session_id limit ${STALE_PAGE}`,
        last,
      );
      for (const row of rows) {
        stale.all.push(Number(row["number"]));
        if (textOf(row).includes(searched)) stale.matching.push(Number(row["number"]));
      }
      if (rows.length < STALE_PAGE) return stale;
      last = rows.at(-1)?.["session_id"] as string;
    }
  }

  /**
   * Estimates how many sessions match and which parts of the text are rarest. The newest sessions give the share, as they are walked
   * first; rarity is judged by random ones, because ids of about the same time are alike. A single match among the newest may be the
   * very session that is looked for, so it counts only if a random one matches as well.
   */
  async #sample(searched: string): Promise<Sample> {
    const others = await this.#readOthers();
    const [row] = await this.#pool.query(
      `select count(*) filter (where n.fits)::integer as matches, count(*)::integer as newest,
         (select max(number) from session_search) - (select min(number) from session_search) + 1 as sessions
       from (select strpos(m.text, $1) > 0 as fits from session_search m order by m.number desc limit ${NEWEST}) n`,
      searched,
    );
    const { matches, newest, sessions } = row as { matches: number; newest: number; sessions: number | null };
    const isRare = matches === 0 || (matches === 1 && !others.some((text) => text.includes(searched)));
    const parts = partsOf(searched).map((part) => ({
      part,
      count: others.filter((text) => text.includes(part)).length,
    }));
    parts.sort((a, b) => a.count - b.count);
    const rare = parts.filter(({ count }, at) => at === 0 || count < others.length / 10).slice(0, MOST_PARTS);
    return { share: isRare ? 0 : matches / newest, sessions: sessions ?? 0, rarest: rare.map(({ part }) => part) };
  }

  /** Texts of random sessions, cached: what is rare among them stays rare for a while. */
  async #readOthers(): Promise<string[]> {
    if (performance.now() < this.#others.until) return this.#others.texts;
    const rows = await this.#pool.query(
      `with b as materialized (select min(number) as first, max(number) as last from session_search)
       select m.text from session_search m where m.number = any (array(
         select (b.first + floor(random() * (b.last - b.first + 1)))::bigint from b, generate_series(1, ${OTHERS})))`,
    );
    const texts = rows.map((row) => row["text"] as string);
    this.#others = { texts, until: performance.now() + OTHERS_MS };
    return texts;
  }

  async #findAll(filter: ListFilter, searched: string, stale: Stale, parts: string[]): Promise<FoundSessions> {
    const values = new Values();
    const matches = `select m.number from session_search m where m.grams @> ${values.add(arrayOf(parts.map(gramOf)))}::integer[]
        and strpos(m.text, ${values.add(searched)}) > 0 and m.number <> all (${values.add(arrayOf(stale.all))}::bigint[])
      union all select unnest(${values.add(arrayOf(stale.matching))}::bigint[])`;
    const fitting = toWhere(conditions(filter, values));
    const [row] = await this.#pool.query(
      `with m as materialized (${matches}),
       f as materialized (select s.session_id, s.number, s.status, s.created_at, s.updated_at, s.updated_period
         from m join agent_state s on s.number = m.number ${fitting})
       select (select json_agg(c) from (select status, count(*) as count from f group by status) c) as counts,
         (select json_agg(p.session_id) from (${await this.#lists.pageOf("f", filter, values)}) p) as ids`,
      ...values.list,
    );
    const { counts, ids } = row as { counts: Row[] | null; ids: string[] | null };
    const byStatus = toCounts(counts ?? []);
    return {
      session_ids: (ids ?? []).map(fromText),
      total: totalOf(byStatus, filter.statuses),
      counts: byStatus,
      exact: true,
    };
  }

  /** SEARCH-3. Reads one row more than the page, to know whether there are more. Null if too few are found this way. */
  async #walk(filter: ListFilter, searched: string, stale: Stale, most: number): Promise<FoundSessions | null> {
    const matches = (values: Values): string =>
      // A value for each row, not `exists`: that is planned as a join, which reads all texts before the first row is looked at.
      `(s.number = any (${values.add(arrayOf(stale.matching))}::bigint[]) or coalesce((
         select strpos(m.text, ${values.add(searched)}) > 0 and m.number <> all (${values.add(arrayOf(stale.all))}::bigint[])
         from session_search m where m.number = s.number), false))`;
    const read = (list: ListFilter): Promise<WalkedPage> =>
      isOfAllByCreation(list) ? this.#walkTexts(list, searched, stale, most) : this.#lists.walk(list, most, matches);
    const { statuses, after, limit, offset, ...anyStatus } = filter;
    const page = await read({ ...filter, limit: limit + 1 });
    if (page.ids.length <= limit && !page.isWhole) return null;
    const isFirst = !statuses && !after && offset === 0;
    const newest = isFirst ? page : await read({ ...anyStatus, limit: limit + 1, offset: 0 });
    return {
      session_ids: page.ids.slice(0, limit),
      total: page.ids.length === 0 ? 0 : offset + page.ids.length,
      counts: countsOf(newest.statuses),
      exact: isFirst && page.isWhole && page.ids.length <= limit,
    };
  }

  /** The same along the texts, so that only sessions that match are looked up. */
  async #walkTexts({ limit, offset }: ListFilter, searched: string, stale: Stale, most: number): Promise<WalkedPage> {
    const rows = await this.#pool.query(
      `with w as (select m.number, m.text from session_search m order by m.number desc limit $1),
       f as (select w.number from w where strpos(w.text, $2) > 0 and w.number <> all ($3::bigint[]) order by w.number desc limit $5)
       select s.session_id, s.status from agent_state s
       where s.number = any (array(select number from f union all select unnest($4::bigint[])))
       order by s.number desc limit $6 offset $7`,
      most,
      searched,
      arrayOf(stale.all),
      arrayOf(stale.matching),
      limit + offset,
      limit,
      offset,
    );
    const page = pageFrom(rows);
    if (page.ids.length === limit) return page;
    const [seen] = await this.#pool.query(
      "select count(*) as count from (select 1 from session_search limit $1) m",
      most,
    );
    return { ...page, isWhole: Number(seen?.["count"]) < most };
  }
}

/** Whether a list has all sessions in the order in which they were created, which is that of their texts. */
const isOfAllByCreation = (filter: ListFilter): boolean =>
  filter.sort !== "updated_at" && !filter.statuses && !filter.after && conditions(filter, new Values()).length === 0;

/** The share of the newest sessions that match, the number of all sessions, and the rarest parts of the text. */
type Sample = { share: number; sessions: number; rarest: string[] };

/** Null if it is cheaper to read all matches by the index, which costs about three times as much per row. */
function rowsToWalk({ share, sessions }: Sample, { limit, offset }: ListFilter): number | null {
  const expected = share * sessions;
  const enough = (offset + limit + 1) / share;
  return expected > MOST_COUNTED && enough < 3 * expected ? Math.ceil(MARGIN * enough) : null;
}

type Stale = { all: number[]; matching: number[] };

/** The searched text of a row of `TEXT_COLUMNS`, as it is stored and compared. */
const textOf = ({ session_id, agent_id, moniker, result }: Row): string =>
  storable(
    searchedText({
      session_id: fromText(session_id as string),
      agent_id: fromText(agent_id as string),
      moniker: fromText(moniker as string),
      text: beginningOf(result === null ? null : fromJson(result as never)),
    }),
  );

/** PostgreSQL's texts hold no zero character and no half of a surrogate pair. */
const storable = (text: string): string => text.replaceAll("\u0000", "\ufffd").toWellFormed();

const LONGEST_PART = 3;
const LENGTHS = [1, 2, LONGEST_PART];

/** The parts by which a text is looked up: all of three characters, or the text itself if it is shorter. */
function partsOf(searched: string): string[] {
  const characters = Array.from(searched);
  const starts = characters.slice(0, Math.max(1, characters.length - LONGEST_PART + 1));
  return [...new Set(starts.map((_, from) => characters.slice(from, from + LONGEST_PART).join("")))];
}

/** Hashes of all parts of up to three characters. Different parts may share a hash: the text itself is compared too. */
function gramsOf(text: string): Scalar[] {
  const codes = codesOf(text);
  const grams = new Set<number>();
  for (const length of LENGTHS)
    for (let from = 0; from + length <= codes.length; from++) grams.add(gramAt(codes, from, length));
  return [...grams];
}

const gramOf = (part: string): number => {
  const codes = codesOf(part);
  return gramAt(codes, 0, codes.length);
};

const codesOf = (text: string): number[] => Array.from(text, (character) => character.codePointAt(0) as number);

function gramAt(codes: readonly number[], from: number, length: number): number {
  let hash = length;
  for (let at = from; at < from + length; at++) hash = Math.imul(hash ^ (codes[at] as number), 0x01000193);
  return hash;
}

export type UpkeepTuning = {
  /** How often counts and search texts are brought up to date, in milliseconds. 5,000 by default. */
  upkeep_ms: number;
};
export const UPKEEP_TUNING: UpkeepTuning = { upkeep_ms: 5000 };

/** How long a process has the turn, in milliseconds, in case it dies meanwhile. */
const TURN_MS = 30_000;
const MOST_CHANGES = 10_000;
const MOST_TEXTS = 500;

/**
 * Background work for lists: adds up changes of counts and indexes texts that changed. Without it reads are slower but still exact,
 * so nothing waits for it and it may fail.
 *
 * UPKEEP-1  One process at a time does it. If that one is late, another may start: each statement is correct by itself.
 * UPKEEP-2  A text is indexed only if the session, with its row locked, still has the revision that the text was made from;
 *     otherwise it stays stale. Rows that others have locked are skipped, so that no deadlock with a commit is possible.
 */
export class ListUpkeep {
  readonly #pool: Pool;
  readonly #every_ms: number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(pool: Pool, { upkeep_ms }: UpkeepTuning) {
    this.#pool = pool;
    this.#every_ms = upkeep_ms;
  }

  start(): void {
    if (this.#stopped) return;
    // Spread out, so that the processes do not all try at once.
    const wait = this.#every_ms * (0.75 + Math.random() / 2);
    this.#timer = setTimeout(() => {
      this.#running = this.run()
        .catch(() => {}) // The next time comes, and reads do without.
        .then(() => this.start());
    }, wait).unref();
  }

  /** Waits for the run that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Does all there is to do now, unless another process is at it. */
  async run(): Promise<void> {
    if (!(await this.#takeTurn())) return; // UPKEEP-1
    await this.#addUpCounts();
    await this.#indexTexts();
    await this.#pool.query("update upkeep set until = now() where name = 'lists'");
  }

  async #takeTurn(): Promise<boolean> {
    const rows = await this.#pool.query(
      `update upkeep set until = now() + ${TURN_MS} * interval '1 millisecond' where name = 'lists' and until < now()
         and (exists (select 1 from session_count_changes) or exists (select 1 from session_search_stale)) returning 1`,
    );
    return rows.length > 0;
  }

  async #addUpCounts(): Promise<void> {
    for (let count = MOST_CHANGES; count === MOST_CHANGES && !this.#stopped; ) {
      const [row] = await this.#pool.query(ADD_UP, MOST_CHANGES);
      count = Number(row?.["count"]);
    }
    await this.#pool.query("delete from session_counts where count = 0");
  }

  async #indexTexts(): Promise<void> {
    for (let last = ""; !this.#stopped; ) {
      const rows = await this.#pool.query(
        `select ${TEXT_COLUMNS} from session_search_stale d join agent_state s on s.session_id = d.session_id
         where d.session_id > $1 order by d.session_id limit ${MOST_TEXTS}`,
        last,
      );
      const texts = rows.map((row): Scalar[] => {
        const text = textOf(row);
        return [...KEYS.map((name) => row[name] as Scalar), text, arrayOf(gramsOf(text))];
      });
      if (texts.length > 0) await this.#pool.query(INDEX, ...toArrays(COLUMNS, texts));
      if (rows.length < MOST_TEXTS) return;
      last = rows.at(-1)?.["session_id"] as string;
      await this.#pool.query(
        `update upkeep set until = now() + ${TURN_MS} * interval '1 millisecond' where name = 'lists'`,
      );
    }
  }
}

/** Two processes at once take different changes, and write in the same order. */
const ADD_UP = `
with taken as (
  delete from session_count_changes where number in (
    select number from session_count_changes order by number limit $1 for update skip locked)
  returning agent_id, moniker, status, needs_person, change),
sums as (
  select k.agent_key, k.moniker_key, t.status, t.needs_person, sum(t.change)::bigint as count
  from taken t cross join lateral (values ('=' || t.agent_id, '=' || t.moniker), ('', '=' || t.moniker), ('', '')) k (agent_key, moniker_key)
  group by k.agent_key, k.moniker_key, t.status, t.needs_person having sum(t.change) <> 0),
added as (
  insert into session_counts as c (agent_key, moniker_key, status, needs_person, count)
    select * from sums order by agent_key, moniker_key, status, needs_person
  on conflict (agent_key, moniker_key, status, needs_person) do update set count = c.count + excluded.count)
select count(*) as count from taken`;

const KEYS = ["session_id", "number", "revision"];
const COLUMNS: readonly InputColumn[] = [
  { name: "session_id", sql_type: "text" },
  { name: "number", sql_type: "bigint" },
  { name: "revision", sql_type: "bigint" },
  { name: "text", sql_type: "text" },
  { name: "grams", sql_type: "text" },
];

/** UPKEEP-2. Written so that rows are found by key even if the planner's statistics are outdated. */
const INDEX = `
with i as materialized (${fromArrays(COLUMNS, 1)}),
mine as materialized (
  select i.* from i cross join lateral (select 1 from agent_state s where s.session_id = i.session_id and s.revision = i.revision
    for update skip locked) locked),
fresh as (update agent_state set search_is_stale = false where session_id = any (array(select session_id from mine))),
written as (
  insert into session_search as x (number, session_id, text, grams)
    select number, session_id, text, grams::integer[] from mine
  on conflict (number) do update set text = excluded.text, grams = excluded.grams where x.text <> excluded.text)
delete from session_search_stale where session_id = any (array(select session_id from mine))`;

/** How many sessions or conversations one statement deletes, so that it does not hold its locks for long. */
const AT_ONCE = 500;

export async function prune(pool: Pool, before: string): Promise<Pruned> {
  return { sessions: await repeat(pool, SESSIONS, before), conversations: await repeat(pool, CONVERSATIONS, before) };
}

async function repeat(pool: Pool, statement: string, before: string): Promise<number> {
  for (let total = 0; ; ) {
    const [row] = await pool.query(statement, before, AT_ONCE);
    const deleted = Number(row?.["count"] ?? 0);
    total += deleted;
    if (deleted === 0) return total;
  }
}

/** Forks are deleted before their parents. A session with pending actions is kept. */
const SESSIONS = `
with old as materialized (
  select s.session_id from agent_state s
  where s.status in ('done', 'stopped') and s.ended_at < $1::timestamptz and s.node_no is null
    and not exists (select 1 from agent_state c where c.parent_session_id = s.session_id)
    and not exists (select 1 from queue q where q.session_id = s.session_id and not q.processed)
  order by s.session_id limit $2 for update skip locked),
steps as (delete from agent_steps t using old o where t.session_id = o.session_id),
actions as (delete from queue q using old o where q.session_id = o.session_id),
cursors as (delete from session_cursors c using old o where c.session_id = o.session_id),
ranges as (delete from archived_ranges r using old o where r.owner_id = o.session_id and r.kind = 'steps'),
sessions as (delete from agent_state s using old o where s.session_id = o.session_id returning 1)
select count(*)::integer as count from sessions`;

const CONVERSATIONS = `
with old as materialized (
  select c.conversation_id from conversations c
  where c.status = 'archived' and c.created_at < $1::timestamptz
    and not exists (select 1 from conversation_messages m where m.conversation_id = c.conversation_id and m.created_at >= $1::timestamptz)
    and not exists (select 1 from agent_state s where s.conversation_id = c.conversation_id)
  order by c.conversation_id limit $2 for update skip locked),
messages as (delete from conversation_messages m using old o where m.conversation_id = o.conversation_id),
keys as (delete from archived_messages m using old o where m.conversation_id = o.conversation_id),
ranges as (delete from archived_ranges r using old o where r.owner_id = o.conversation_id and r.kind = 'messages'),
numbers as (delete from conversation_numbers n using old o where n.conversation_id = o.conversation_id),
participants as (delete from conversation_participants p using old o where p.conversation_id = o.conversation_id),
conversations as (delete from conversations c using old o where c.conversation_id = o.conversation_id returning 1)
select count(*)::integer as count from conversations`;
