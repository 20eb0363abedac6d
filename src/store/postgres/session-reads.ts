import type { Agent } from "../../domain/agent.ts";
import type { JsonObject } from "../../domain/json.ts";
import { LIVE_STATUSES, type Session } from "../../domain/session.ts";
import { sessionSummarySchema, summaryFrom } from "../../domain/session-summary.ts";
import { folded } from "../../domain/words.ts";
import { type Chain, readState } from "../state-chain.ts";
import type { Page, SessionFilter, SessionSummaries, StoreCounts, SummaryFilter } from "../store.ts";
import type { Pool, Row } from "./connections.ts";
import type { Position } from "./owned-sessions.ts";
import { conditions, type ListFilter, SessionLists, toCounts, totalOf, toWhere, Values } from "./session-lists.ts";
import { type FoundSessions, RESULT_BEGINNING, SessionSearch } from "./session-search.ts";
import { LAST_PLACE, selected, toRow } from "./tables.ts";
import { arrayOf, fromText, toText } from "./values.ts";

/** A session as it is stored, with its state rebuilt. */
export type LoadedSession = {
  session: Session;
  chain: Chain | null;
  error_rows: number;
  epoch: number;
  revision: number;
  after_crash: boolean;
};

export const SESSION_COLUMNS = `${selected("agent_state", "s")}, s.base_iteration, s.context::text as context, s.error_rows, s.epoch, s.revision, s.owner_died`;
const SUMMARY_COLUMNS = [
  ...Object.keys(sessionSummarySchema.shape)
    .filter((name) => name !== "text")
    .map((name) => `s.${name}`),
  RESULT_BEGINNING,
].join(", ");
export const LIVE = LIVE_STATUSES.map((status) => `'${status}'`).join(", ");

/** Reads of sessions. What a session's row does not hold, its state, is rebuilt from its last steps. */
export class SessionReads {
  readonly #pool: Pick<Pool, "query">;
  readonly #lists: SessionLists;
  readonly #search: SessionSearch;

  constructor(pool: Pick<Pool, "query">) {
    this.#pool = pool;
    this.#lists = new SessionLists(pool);
    this.#search = new SessionSearch(pool, this.#lists);
  }

  async get(session_id: string): Promise<Session | null> {
    return (await this.#sessions("where s.session_id = $1", toText(session_id)))[0] ?? null;
  }

  /** Those that are there, in no order. */
  async some(session_ids: string[]): Promise<Session[]> {
    return this.#sessions("where s.session_id = any ($1::text[])", arrayOf(session_ids.map(toText)));
  }

  async list({ status, ...filter }: SessionFilter): Promise<Session[]> {
    const ids = await this.#lists.page(status === undefined ? filter : { ...filter, statuses: [status] });
    return inOrder(ids, await this.some(ids));
  }

  /** Without the sessions' states: see `SessionLists` and `SessionSearch` for how it keeps quick. */
  async summarize({ q, ...filter }: SummaryFilter): Promise<SessionSummaries> {
    const { session_ids, ...found } = await this.#find(filter, folded(q ?? ""));
    const rows = await this.#pool.query(
      `select ${SUMMARY_COLUMNS} from agent_state s where s.session_id = any ($1::text[])`,
      arrayOf(session_ids.map(toText)),
    );
    const summaries = rows.map((row) =>
      summaryFrom(toRow("agent_state", row), row["question"] === null ? null : fromText(row["question"] as string)),
    );
    return { sessions: inOrder(session_ids, summaries), ...found };
  }

  async #find(filter: ListFilter, text: string): Promise<FoundSessions> {
    if (text !== "") return this.#search.find(filter, text);
    const [session_ids, counts] = await Promise.all([
      this.#lists.page(filter),
      filter.session_ids ? this.#countSome(filter) : this.#lists.counts(filter),
    ]);
    return { session_ids, total: totalOf(counts, filter.statuses), counts, exact: true };
  }

  /** Of sessions that were named: they are few. */
  async #countSome(filter: ListFilter): Promise<StoreCounts["sessions"]> {
    const values = new Values();
    const where = toWhere(conditions(filter, values));
    return toCounts(
      await this.#pool.query(
        `select s.status, count(*) as count from agent_state s ${where} group by s.status`,
        ...values.list,
      ),
    );
  }

  /** An agent is found from the one before, so that an agent's sessions are not looked through. */
  async agents(only: string | null, { limit, offset }: Page): Promise<Agent[]> {
    const rows = await this.#pool.query(
      `with recursive a as (
         (select agent_id from agent_state ${only === null ? "" : "where agent_id = $3"} order by agent_id limit 1)
         union all select (select s.agent_id from agent_state s where s.agent_id > a.agent_id order by s.agent_id limit 1)
           from a where a.agent_id is not null ${only === null ? "" : "and false"}),
       page as materialized (select agent_id from a where agent_id is not null limit $1 offset $2),
       changes as materialized (select agent_id, sum(change) as change from session_count_changes group by agent_id)
       select p.agent_id, (coalesce(c.change, 0) + (select coalesce(sum(count), 0) from session_counts
           where agent_key = '=' || p.agent_id))::integer as session_count,
         (select s.session_id from agent_state s where s.agent_id = p.agent_id order by s.number desc limit 1) as latest
       from page p left join changes c on c.agent_id = p.agent_id order by p.agent_id`,
      limit,
      offset,
      ...(only === null ? [] : [toText(only)]),
    );
    const latest = new Map(
      (await this.some(rows.map((row) => fromText(row["latest"] as string)))).map((session) => [
        session.session_id,
        session,
      ]),
    );
    return rows.flatMap(({ agent_id, session_count, latest: id }) => {
      const session = latest.get(fromText(id as string));
      const counted = { agent_id: fromText(agent_id as string), session_count: session_count as number };
      return session ? [{ ...counted, moniker: session.moniker, latest: session }] : [];
    });
  }

  /** The session that moved last among those of an agent that have a step. */
  async lastMoved(agent_id: string): Promise<string | null> {
    const [row] = await this.#pool.query(
      `select session_id from agent_state where agent_id = $1 and (iteration >= 0 or error_rows > 0)
       order by updated_period desc, updated_at desc, number desc limit 1`,
      toText(agent_id),
    );
    return row ? fromText(row["session_id"] as string) : null;
  }

  /** Where sessions stand now. */
  async positions(session_ids: string[]): Promise<(Position & { session_id: string; updated_at: string })[]> {
    const rows = await this.#pool.query(
      "select session_id, iteration, error_rows, updated_at from agent_state where session_id = any ($1::text[])",
      arrayOf(session_ids.map(toText)),
    );
    return rows.map((row) => ({ ...row, session_id: fromText(row["session_id"] as string) })) as never;
  }

  async movedSince(time: string): Promise<string[]> {
    const rows = await this.#pool.query(
      `select session_id from agent_state where updated_at >= $1::timestamptz
         and updated_period >= floor(extract(epoch from $1::timestamptz) / 10)::bigint limit 10000`,
      time,
    );
    return rows.map((row) => fromText(row["session_id"] as string));
  }

  counts(): Promise<StoreCounts["sessions"]> {
    return this.#lists.counts({});
  }

  /** Rows that hold `SESSION_COLUMNS` become sessions with their states. Their steps never change, so a second look finds them. */
  async load(rows: Row[]): Promise<LoadedSession[]> {
    const chains = await this.#chains(rows.filter(({ base_iteration }) => base_iteration !== null));
    return rows.map((row) => {
      const { session_id } = row as { session_id: string };
      const chain = chains.get(session_id) ?? null;
      const context = chain?.state ?? (JSON.parse((row["context"] as string | null) ?? "{}") as JsonObject);
      const session = { ...toRow("agent_state", row), context };
      return {
        session,
        chain,
        error_rows: Number(row["error_rows"]),
        epoch: Number(row["epoch"]),
        revision: Number(row["revision"]),
        after_crash: row["owner_died"] === true,
      };
    });
  }

  async #sessions(where: string, ...parameters: (string | number)[]): Promise<Session[]> {
    const rows = await this.#pool.query(`select ${SESSION_COLUMNS} from agent_state s ${where}`, ...parameters);
    return (await this.load(rows)).map(({ session }) => session);
  }

  async #chains(rows: Row[]): Promise<Map<string, Chain>> {
    const chains = new Map<string, Chain>();
    if (rows.length === 0) return chains;
    const steps = await this.#pool.query(
      `select t.session_id, t.state_kind, t.base_iteration, t.state::text as state
       from unnest($1::text[], $2::integer[], $3::integer[]) as w (session_id, first, last)
       join agent_steps t on t.session_id = w.session_id and t.iteration between w.first and w.last and t.place = ${LAST_PLACE}
       order by t.session_id, t.iteration`,
      arrayOf(rows.map((row) => row["session_id"] as string)),
      arrayOf(rows.map((row) => row["base_iteration"] as number)),
      arrayOf(rows.map((row) => row["iteration"] as number)),
    );
    for (const step of steps) {
      const id = step["session_id"] as string;
      chains.set(id, readState(chains.get(id) ?? null, step as never));
    }
    return chains;
  }
}

/** Rows as a list names them; one that is gone meanwhile is left out. */
function inOrder<Listed extends { session_id: string }>(session_ids: readonly string[], rows: Listed[]): Listed[] {
  const byId = new Map(rows.map((row) => [row.session_id, row]));
  return session_ids.flatMap((id) => byId.get(id) ?? []);
}
