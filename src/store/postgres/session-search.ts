import { beginningOf, searchedText } from "../../domain/session-summary.ts";
import type { Pool, Row } from "./connections.ts";
import {
  conditions,
  type ListFilter,
  type SessionCounts,
  type SessionLists,
  toCounts,
  totalOf,
  toWhere,
  Values,
} from "./session-lists.ts";
import { arrayOf, fromJson, fromText, type Scalar, toText } from "./values.ts";

/** See `SessionSummaries`. */
export type FoundSessions = { session_ids: string[]; total: number; counts: SessionCounts; exact: boolean };

/** Sessions that are looked at to tell whether many match. */
const SAMPLE = 500;
/** Where more are expected to match, they are not counted. */
const MOST_COUNTED = 4000;
/** Parts of the question that are looked up in the index; the text itself decides. */
const MOST_GRAMS = 24;

/** A result that is a text is only read as far as lists show and search it. */
export const RESULT_BEGINNING = `case when jsonb_typeof(s.result) = 'string' then to_jsonb(left(s.result #>> '{}', 301)) else s.result end as result`;
/** What the text of a session is made of. */
export const TEXT_COLUMNS = `s.session_id, s.number, s.revision, s.agent_id, s.moniker, ${RESULT_BEGINNING}`;

/**
 * Sessions by a part of their text.
 *
 * X1  `session_search` has each session's text as it was a while ago, with an index of its parts; `session_search_stale` names those
 *     whose text may have changed since, and a trigger sees to it. These few are read from their rows. So what is found is exact,
 *     and a step writes no index.
 * X2  The stale ones are read first. One that becomes stale after that is found by the text that it had.
 * X3  Of many matches a page is found by walking along the list; they are not counted then, and the answer says so.
 */
export class SessionSearch {
  readonly #pool: Pick<Pool, "query">;
  readonly #lists: SessionLists;

  constructor(pool: Pick<Pool, "query">, lists: SessionLists) {
    this.#pool = pool;
    this.#lists = lists;
  }

  /** The text that is looked for is folded and not empty. */
  async find(filter: ListFilter, text: string): Promise<FoundSessions> {
    const wanted = storable(text);
    const stale = await this.#stale(wanted); // X2
    return (await this.#areMany(wanted)) ? this.#walk(filter, wanted, stale) : this.#findAll(filter, wanted, stale);
  }

  async #stale(wanted: string): Promise<Stale> {
    const rows = await this.#pool.query(
      `select ${TEXT_COLUMNS} from session_search_stale d join agent_state s on s.session_id = d.session_id`,
    );
    const stale: Stale = { all: [], matching: [] };
    for (const row of rows) {
      stale.all.push(Number(row["number"]));
      if (textOf(row).includes(wanted)) stale.matching.push(Number(row["number"]));
    }
    return stale;
  }

  async #areMany(wanted: string): Promise<boolean> {
    const [row] = await this.#pool.query(
      `select count(*)::integer as sampled, (count(*) filter (where strpos(n.text, $1) > 0))::integer as matching,
         greatest(0, (select max(number) from session_search) - (select min(number) from session_search) + 1)::bigint as all
       from (select text from session_search order by number desc limit ${SAMPLE}) n`,
      wanted,
    );
    const { sampled, matching, all } = row as { sampled: number; matching: number; all: number };
    return sampled === SAMPLE && (matching / sampled) * all > MOST_COUNTED;
  }

  async #findAll(filter: ListFilter, wanted: string, stale: Stale): Promise<FoundSessions> {
    const values = new Values();
    const matches = `select m.number from session_search m where m.grams @> ${values.add(arrayOf(gramsOfQuestion(wanted)))}::integer[]
        and strpos(m.text, ${values.add(wanted)}) > 0 and m.number <> all (${values.add(arrayOf(stale.all))}::bigint[])
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
    const found = toCounts(counts ?? []);
    return {
      session_ids: (ids ?? []).map(fromText),
      total: totalOf(found, filter.statuses),
      counts: found,
      exact: true,
    };
  }

  /** X3. One more than the page tells whether there are more. */
  async #walk(filter: ListFilter, wanted: string, stale: Stale): Promise<FoundSessions> {
    const matches = (values: Values): string =>
      `(s.number = any (${values.add(arrayOf(stale.matching))}::bigint[]) or exists (select 1 from session_search m
         where m.number = s.number and strpos(m.text, ${values.add(wanted)}) > 0 and m.number <> all (${values.add(arrayOf(stale.all))}::bigint[])))`;
    const { statuses, after, limit, offset, ...anyStatus } = filter;
    const page = await this.#lists.page({ ...filter, limit: limit + 1 }, matches);
    const newest =
      statuses || after || offset > 0
        ? await this.#lists.page({ ...anyStatus, limit: limit + 1, offset: 0 }, matches)
        : page;
    const rows = await this.#pool.query(
      "select status, count(*) as count from agent_state where session_id = any ($1::text[]) group by status",
      arrayOf(newest.map(toText)),
    );
    return { session_ids: page.slice(0, limit), total: offset + page.length, counts: toCounts(rows), exact: false };
  }
}

type Stale = { all: number[]; matching: number[] };

/** The text of a row of `TEXT_COLUMNS` as it is stored and compared. */
export const textOf = ({ session_id, agent_id, moniker, result }: Row): string =>
  storable(
    searchedText({
      session_id: fromText(session_id as string),
      agent_id: fromText(agent_id as string),
      moniker: fromText(moniker as string),
      text: beginningOf(result === null ? null : fromJson(result as never)),
    }),
  );

/** The server's texts hold no zero character and no half of a pair. */
const storable = (text: string): string => text.replaceAll("\u0000", "\ufffd").toWellFormed();

const LENGTHS = [1, 2, 3];

/** Each part of up to three characters as a number. Different parts may share one: the text decides. */
export function gramsOf(text: string, lengths: readonly number[] = LENGTHS): Scalar[] {
  const characters = Array.from(text, (character) => character.codePointAt(0) as number);
  const grams = new Set<number>();
  for (const length of lengths)
    for (let from = 0; from + length <= characters.length; from++) {
      let hash = length;
      for (let at = from; at < from + length; at++) hash = Math.imul(hash ^ (characters[at] as number), 0x01000193);
      grams.add(hash);
    }
  return [...grams];
}

const gramsOfQuestion = (wanted: string): Scalar[] =>
  gramsOf(wanted, [Math.min(3, Array.from(wanted).length)]).slice(0, MOST_GRAMS);
