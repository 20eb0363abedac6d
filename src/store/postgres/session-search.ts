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
import { arrayOf, fromJson, fromText, type Scalar, toText } from "./value-encoding.ts";

/** See `SessionSummaries`. */
export type FoundSessions = { session_ids: string[]; total: number; counts: SessionCounts; exact: boolean };

/** Sessions that are looked at to tell how to search. */
const NEWEST = 200;
const OTHERS = 100;
/** How long they are kept, in milliseconds. */
const OTHERS_MS = 60_000;
const STALE_PAGE = 2000;
/** Where more are expected to match, they are not counted. */
const MOST_COUNTED = 4000;
/** How many times the sessions that should be enough are looked at. */
const MARGIN = 3;
/** Parts of the text that are looked up in the index: with the rarest, few sessions are left to look at. */
const MOST_PARTS = 4;

/** A result that is a text is only read as far as lists show and search it. */
export const RESULT_BEGINNING = `case when jsonb_typeof(s.result) = 'string' then to_jsonb(left(s.result #>> '{}', 301)) else s.result end as result`;
/** What the text of a session is made of. */
export const TEXT_COLUMNS = `s.session_id, s.number, s.revision, s.agent_id, s.moniker, ${RESULT_BEGINNING}`;

/**
 * Sessions by a part of their text.
 *
 * SEARCH-1  `session_search` has each session's text as it was a while ago, with an index of its parts; `session_search_stale` names those
 *     whose text may have changed since, and a trigger sees to it. These few are read from their rows. So what is found is exact,
 *     and a step writes no index.
 * SEARCH-2  The stale ones are read first. One that becomes stale after that is found by the text that it had.
 * SEARCH-3  Of many matches a page is found by walking along the list; they are not counted then, and the answer says so.
 */
export class SessionSearch {
  readonly #pool: Pick<Pool, "query">;
  readonly #lists: SessionLists;
  #others: { texts: string[]; until: number } = { texts: [], until: 0 };

  constructor(pool: Pick<Pool, "query">, lists: SessionLists) {
    this.#pool = pool;
    this.#lists = lists;
  }

  /** The text that is looked for is folded and not empty. */
  async find(filter: ListFilter, text: string): Promise<FoundSessions> {
    const wanted = storable(text);
    const [stale, sample] = await Promise.all([this.#stale(wanted), this.#sample(wanted)]); // SEARCH-2
    const most = rowsToWalk(sample, filter);
    const walked = most === null ? null : await this.#walk(filter, wanted, stale, most);
    return walked ?? this.#findAll(filter, wanted, stale, sample.rarest);
  }

  /** Mostly few; after a migration all, until they are indexed. */
  async #stale(wanted: string): Promise<Stale> {
    const stale: Stale = { all: [], matching: [] };
    for (let last = ""; ; ) {
      const rows = await this.#pool.query(
        `select ${TEXT_COLUMNS} from session_search_stale d join agent_state s on s.session_id = d.session_id
         where d.session_id > $1 order by d.session_id limit ${STALE_PAGE}`,
        last,
      );
      for (const row of rows) {
        stale.all.push(Number(row["number"]));
        if (textOf(row).includes(wanted)) stale.matching.push(Number(row["number"]));
      }
      if (rows.length < STALE_PAGE) return stale;
      last = rows.at(-1)?.["session_id"] as string;
    }
  }

  /**
   * How many sessions are expected to match, and which parts of the text lead to the fewest. The newest tell the first, as they are
   * what would be walked along; but ids of about the same time are alike, so any others tell the second.
   */
  async #sample(wanted: string): Promise<Sample> {
    const others = await this.#readOthers();
    const [row] = await this.#pool.query(
      `select count(*) filter (where n.fits)::float / greatest(1, count(*)) as share,
         (select max(number) from session_search) - (select min(number) from session_search) + 1 as sessions
       from (select strpos(m.text, $1) > 0 as fits from session_search m order by m.number desc limit ${NEWEST}) n`,
      wanted,
    );
    const { share, sessions } = row as { share: number; sessions: number | null };
    const parts = partsOf(wanted).map((part) => ({ part, count: others.filter((text) => text.includes(part)).length }));
    parts.sort((a, b) => a.count - b.count);
    const rare = parts.filter(({ count }, at) => at === 0 || count < others.length / 10).slice(0, MOST_PARTS);
    return { share, sessions: sessions ?? 0, rarest: rare.map(({ part }) => part) };
  }

  /** Texts of any sessions: what is rare among them stays so for a while. */
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

  async #findAll(filter: ListFilter, wanted: string, stale: Stale, parts: string[]): Promise<FoundSessions> {
    const values = new Values();
    const matches = `select m.number from session_search m where m.grams @> ${values.add(arrayOf(parts.map(gramOf)))}::integer[]
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

  /** SEARCH-3. One more than the page tells whether there are more. Null where too few are found that way. */
  async #walk(filter: ListFilter, wanted: string, stale: Stale, most: number): Promise<FoundSessions | null> {
    const matches = (values: Values): string =>
      `(s.number = any (${values.add(arrayOf(stale.matching))}::bigint[]) or exists (select 1 from session_search m
         where m.number = s.number and strpos(m.text, ${values.add(wanted)}) > 0 and m.number <> all (${values.add(arrayOf(stale.all))}::bigint[])))`;
    const { statuses, after, limit, offset, ...anyStatus } = filter;
    const page = await this.#lists.walk({ ...filter, limit: limit + 1 }, most, matches);
    if (page.ids.length <= limit && !page.isWhole) return null;
    const isFirst = !statuses && !after && offset === 0;
    const newest = isFirst
      ? page
      : await this.#lists.walk({ ...anyStatus, limit: limit + 1, offset: 0 }, most, matches);
    const rows = await this.#pool.query(
      "select status, count(*) as count from agent_state where session_id = any ($1::text[]) group by status",
      arrayOf(newest.ids.map(toText)),
    );
    return {
      session_ids: page.ids.slice(0, limit),
      total: page.ids.length === 0 ? 0 : offset + page.ids.length,
      counts: toCounts(rows),
      exact: isFirst && page.isWhole && page.ids.length <= limit,
    };
  }
}

/** What a few sessions tell of all: which share of the newest match, how many there are, the rarest parts of the text. */
type Sample = { share: number; sessions: number; rarest: string[] };

/** Null where it is cheaper to read all that match by the index, which takes about three times as long for each. */
function rowsToWalk({ share, sessions }: Sample, { limit, offset }: ListFilter): number | null {
  const expected = share * sessions;
  const enough = (offset + limit + 1) / share;
  return expected > MOST_COUNTED && enough < 3 * expected ? Math.ceil(MARGIN * enough) : null;
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

const LONGEST_PART = 3;
const LENGTHS = [1, 2, LONGEST_PART];

/** The parts that a text is looked up by: all of three characters, or the text itself where it is shorter. */
function partsOf(wanted: string): string[] {
  const characters = Array.from(wanted);
  const starts = characters.slice(0, Math.max(1, characters.length - LONGEST_PART + 1));
  return [...new Set(starts.map((_, from) => characters.slice(from, from + LONGEST_PART).join("")))];
}

/** All parts of up to three characters as the index has them. Different parts may share a number: the text decides. */
export function gramsOf(text: string): Scalar[] {
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
