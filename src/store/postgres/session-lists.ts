import { SESSION_STATUSES, type SessionStatus } from "../../domain/session.ts";
import type { ListPlace, Page, SessionSort, StoreCounts, SummaryFilter } from "../store.ts";
import type { Parameter, Pool, Row } from "./connections.ts";
import { arrayOf, fromText, toText } from "./value-encoding.ts";

export type SessionCounts = StoreCounts["sessions"];
export type ListFilter = Omit<SummaryFilter, "q">;
/** A further condition on `agent_state s`. */
type Condition = (values: Values) => string;

/** The values of a statement, in the order of their parameters. */
export class Values {
  readonly list: Parameter[] = [];

  /** The parameter that stands for the value. */
  add(value: Parameter): string {
    this.list.push(value);
    return `$${this.list.length}`;
  }
}

/** Sessions are numbered as they are written, so the order of creation does not depend on clocks. */
const ORDERS: Readonly<Record<SessionSort, string>> = {
  created_at: "s.number desc",
  // The period comes first because it is what the index has: see the migration.
  updated_at: "s.updated_period desc, s.updated_at desc, s.number desc",
};
const PERIOD_MS = 10_000;

/**
 * Which sessions a list shows, by indexes only, however many sessions there are.
 *
 * LISTS-1  A list by creation is read along an index that has all its equal conditions first, one stretch for each status, and
 *     the stretches are merged. So nothing is read that is not shown, but for the offset.
 * LISTS-2  Counts are kept by the database with each commit: `session_counts`, and what was appended to `session_count_changes`
 *     since. Both are read in one statement, so that the sum is exact at one moment.
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
   * The same of those that fulfil one more condition, which no index serves: rows are looked at until the page is full, but no more
   * than `most` of each stretch. `isWhole` tells that a page which is not full has all there is.
   */
  async walk(filter: ListFilter, most: number, condition: Condition): Promise<{ ids: string[]; isWhole: boolean }> {
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
      `select s.session_id from (${arms.join(" union all ")}) s order by ${order} limit ${values.add(limit)} offset ${values.add(offset)}`,
      ...values.list,
    );
    const ids = rows.map((row) => fromText(row["session_id"] as string));
    if (ids.length === limit) return { ids, isWhole: false };
    const [seen] = await this.#pool.query(
      `select max(w.count) as count from (${windows.map((window) => `select count(*) from ${window} s`).join(" union all ")}) w`,
      ...values.list.slice(0, counted),
    );
    return { ids, isWhole: Number(seen?.["count"]) < most };
  }

  async #windows(filter: ListFilter, most: number, values: Values): Promise<string[]> {
    const { sort = "created_at", after } = filter;
    const common = conditions(filter, values);
    if (after) common.push(beyond(sort, await this.#place(after), values));
    const limit = values.add(most);
    return stretchesOf(filter, values).map(
      (stretch) => `(select s.session_id, s.number, s.updated_period, s.updated_at from agent_state s
        ${toWhere([...common, ...stretch])} order by ${ORDERS[sort]} limit ${limit})`,
    );
  }

  /** The statement for a page, over a table of sessions that fulfil all other conditions. */
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
    // An agent's are not kept for all monikers together: it has few.
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

/** Rows of `status` and `count`. */
export function toCounts(rows: readonly Row[]): SessionCounts {
  const counts = Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0])) as SessionCounts;
  for (const { status, count } of rows) counts[status as SessionStatus] = Number(count);
  return counts;
}

/** Of some statuses, or of all. */
export const totalOf = (counts: SessionCounts, statuses: readonly SessionStatus[] = SESSION_STATUSES): number =>
  [...new Set(statuses)].reduce((sum, status) => sum + counts[status], 0);

const keyOf = (name: string | undefined): string => (name === undefined ? "" : `=${toText(name)}`);

/** What a list asks for beside statuses. */
export function conditions({ agent_id, moniker, session_ids, needs_person }: ListFilter, values: Values): string[] {
  const all: string[] = [];
  if (agent_id !== undefined) all.push(`s.agent_id = ${values.add(toText(agent_id))}`);
  if (moniker !== undefined) all.push(`s.moniker = ${values.add(toText(moniker))}`);
  if (session_ids) all.push(`s.session_id = any (${values.add(arrayOf(session_ids.map(toText)))}::text[])`);
  if (needs_person) all.push("s.needs_person");
  return all;
}

export const toWhere = (all: readonly string[]): string => (all.length > 0 ? `where ${all.join(" and ")}` : "");

/** LISTS-1. The conditions of each stretch. */
function stretchesOf(
  { statuses, sort, agent_id, moniker, needs_person, session_ids }: ListFilter,
  values: Values,
): string[][] {
  if (statuses?.length === 0) return [["false"]];
  const hasIndexWithStatus = sort !== "updated_at" && !needs_person && !session_ids;
  const isOfMoniker = moniker !== undefined && agent_id === undefined;
  const apart = hasIndexWithStatus ? (statuses ?? (isOfMoniker ? SESSION_STATUSES : undefined)) : undefined;
  if (apart) return [...new Set(apart)].map((status) => [`s.status = ${values.add(status)}`]);
  return [statuses ? [`s.status = any (${values.add(arrayOf(statuses))}::text[])`] : []];
}

/** `number` is null where the session is gone. */
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
