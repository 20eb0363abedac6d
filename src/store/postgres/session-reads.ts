import type { Agent } from "../../domain/agent.ts";
import type { JsonObject } from "../../domain/json.ts";
import { LIVE_STATUSES, SESSION_STATUSES, type Session } from "../../domain/session.ts";
import { type Chain, readState } from "../state-chain.ts";
import type { Page, SessionFilter, StoreCounts } from "../store.ts";
import type { Pool, Row } from "./connections.ts";
import type { Position } from "./owned-sessions.ts";
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
export const LIVE = LIVE_STATUSES.map((status) => `'${status}'`).join(", ");

/** Reads of sessions. What a session's row does not hold, its state, is rebuilt from its last steps. */
export class SessionReads {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async get(session_id: string): Promise<Session | null> {
    return (await this.#sessions("where s.session_id = $1", toText(session_id)))[0] ?? null;
  }

  /** Those that are there, in no order. */
  async some(session_ids: string[]): Promise<Session[]> {
    return this.#sessions("where s.session_id = any ($1::text[])", arrayOf(session_ids.map(toText)));
  }

  list({ status, agent_id, limit, offset }: SessionFilter): Promise<Session[]> {
    const order = "order by s.number desc limit $1 offset $2";
    if (agent_id !== undefined && status !== undefined)
      return this.#sessions(
        `where s.agent_id = $3 and s.status = $4 ${order}`,
        limit,
        offset,
        toText(agent_id),
        status,
      );
    if (agent_id !== undefined)
      return this.#sessions(`where s.agent_id = $3 ${order}`, limit, offset, toText(agent_id));
    if (status !== undefined) return this.#sessions(`where s.status = $3 ${order}`, limit, offset, status);
    return this.#sessions(order, limit, offset);
  }

  async agents(only: string | null, { limit, offset }: Page): Promise<Agent[]> {
    const rows = await this.#pool.query(
      `select a.agent_id, a.session_count, (select s.session_id from agent_state s where s.agent_id = a.agent_id
           order by s.number desc limit 1) as latest
       from (select agent_id, count(*)::integer as session_count from agent_state
             ${only === null ? "" : "where agent_id = $3"} group by agent_id order by agent_id limit $1 offset $2) a
       order by a.agent_id`,
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
       order by updated_at desc, number desc limit 1`,
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
      "select session_id from agent_state where updated_at >= $1::timestamptz limit 10000",
      time,
    );
    return rows.map((row) => fromText(row["session_id"] as string));
  }

  async counts(): Promise<StoreCounts["sessions"]> {
    const counts = Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0])) as StoreCounts["sessions"];
    const rows = await this.#pool.query("select status, count(*)::integer as count from agent_state group by status");
    for (const { status, count } of rows) counts[status as keyof typeof counts] = Number(count);
    return counts;
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
