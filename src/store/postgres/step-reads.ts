import { setImmediate as nextTick } from "node:timers/promises";
import { copyJson } from "../../domain/json.ts";
import type { Step } from "../../domain/step.ts";
import { type Chain, readState, type StoredState } from "../state-chain.ts";
import type { StepFilter } from "../store.ts";
import type { Parameter, Pool, Row } from "./connections.ts";
import type { Position } from "./owned-sessions.ts";
import { LAST_PLACE, selected, toRow } from "./tables.ts";
import { arrayOf, toText } from "./values.ts";

/** A stretch of a session's own iterations, both ends included. A fork's history is a list of them. */
type Stretch = { session_id: string; first: number; last: number };
type StepRow = Row & StoredState & { session_id: string; iteration: number; status: Step["status"] };

const COLUMNS = `${selected("agent_steps", "t")}, t.place, t.state::text as state, t.state_kind, t.base_iteration`;
const LAST_ITERATION = 2_147_483_647;
/** Milliseconds of decoding after which others get their turn: a page of large states must not hold up the program. */
const SLICE_MS = 10;

/** Reads of steps, with whole states. */
export class StepReads {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async list(filter: StepFilter): Promise<Step[]> {
    const from = Math.max(0, filter.min_iteration ?? 0, (filter.after_iteration ?? -1) + 1);
    const to = Math.min(filter.max_iteration ?? LAST_ITERATION, LAST_ITERATION);
    if (from > to) return [];
    return "agent_id" in filter ? this.#ofAgent(filter, from, to) : this.#ofSession(filter, from, to);
  }

  /** The rows that come after a position, at most so many, in the order they were committed. */
  async after(session_id: string, { iteration, error_rows }: Position, limit: number): Promise<Step[]> {
    const rows = await this.#pool.query(
      `select ${COLUMNS} from agent_steps t where t.session_id = $1 and t.iteration > $2 and t.place >= $3
       order by t.iteration, t.place limit $4`,
      toText(session_id),
      iteration,
      error_rows,
      limit,
    );
    return this.#decode(rows as StepRow[]);
  }

  /** The newest step of a session; a fork without one of its own stands where its parent stood. */
  async latest(session_id: string): Promise<Step | null> {
    for (const { session_id: id, first, last } of (await this.#lineage(session_id)).stretches) {
      const rows = await this.#pool.query(
        `select ${COLUMNS} from agent_steps t where t.session_id = $1 and t.iteration between $2 and $3
         order by t.iteration desc, t.place desc limit 1`,
        id,
        first,
        last,
      );
      if (rows.length > 0) return (await this.#decode(rows as StepRow[]))[0] ?? null;
    }
    return null;
  }

  async #ofAgent(filter: StepFilter & { agent_id: string }, from: number, to: number): Promise<Step[]> {
    const rows = await this.#pool.query(
      `select ${COLUMNS} from agent_steps t
       where t.agent_id = $1 and t.iteration between $2 and $3 ${conditions(filter, 6)}
       order by t.iteration, t.id limit $4 offset $5`,
      toText(filter.agent_id),
      from,
      to,
      filter.limit,
      filter.offset,
      ...conditionValues(filter),
    );
    return this.#decode(rows as StepRow[]);
  }

  async #ofSession(filter: StepFilter & { session_id: string }, from: number, to: number): Promise<Step[]> {
    const { stretches, hasErrors } = await this.#lineage(filter.session_id);
    // Iterations have no gaps, so an offset into them is a range, which the index finds at once.
    const bounded = filter.since_created_at === undefined && filter.status !== "error";
    const exact = bounded && (!hasErrors || filter.status === "ok");
    const first = exact ? from + filter.offset : from;
    const last = bounded ? Math.min(to, from + filter.offset + filter.limit - 1) : to;
    const parts = stretches
      .map((part) => ({ ...part, first: Math.max(part.first, first), last: Math.min(part.last, last) }))
      .filter((part) => part.first <= part.last);
    if (parts.length === 0) return [];
    const rows = await this.#pool.query(
      `select ${COLUMNS} from unnest($1::text[], $2::integer[], $3::integer[]) as w (session_id, first, last)
       join agent_steps t on t.session_id = w.session_id and t.iteration between w.first and w.last
       where true ${conditions(filter, 6)} order by t.iteration, t.place limit $4 offset $5`,
      ...stretchArrays(parts),
      filter.limit,
      exact ? 0 : filter.offset,
      ...conditionValues(filter),
    );
    return this.#decode(rows as StepRow[]);
  }

  /** The session's own iterations after those of its ancestors. */
  async #lineage(session_id: string): Promise<{ stretches: Stretch[]; hasErrors: boolean }> {
    const rows = await this.#pool.query(
      `with recursive line as (
         select session_id, parent_session_id, coalesce(parent_iteration, -1) + 1 as first, ${LAST_ITERATION} as last, error_rows
         from agent_state where session_id = $1
         union all
         select p.session_id, p.parent_session_id, coalesce(p.parent_iteration, -1) + 1, least(l.last, l.first - 1), p.error_rows
         from line l join agent_state p on p.session_id = l.parent_session_id)
       select session_id, first, last, error_rows from line`,
      toText(session_id),
    );
    return {
      stretches: rows as unknown as Stretch[],
      hasErrors: rows.some(({ error_rows }) => Number(error_rows) > 0),
    };
  }

  async #decode(rows: StepRow[]): Promise<Step[]> {
    const chains = new Map<string, Chain>();
    const before = await this.#basesOf(rows);
    const steps: Step[] = [];
    let started = performance.now();
    for (const row of rows) {
      for (const base of before.get(row) ?? []) extend(chains, base);
      // An error row stands beside the chain: its state is whole, and the next step does not build on it.
      const { state } = row.status === "error" ? readState(null, row) : extend(chains, row);
      // Who reads gets a state of their own.
      steps.push({ ...toRow("agent_steps", row), state: copyJson(state) });
      if (performance.now() - started > SLICE_MS) {
        await nextTick();
        started = performance.now();
      }
    }
    return steps;
  }

  /** The steps that states are rebuilt from where the page itself lacks them. */
  async #basesOf(rows: StepRow[]): Promise<Map<StepRow, StepRow[]>> {
    const key = (session_id: string, iteration: number): string => `${iteration} ${session_id}`;
    const seen = new Set<string>();
    const lacking: StepRow[] = [];
    for (const row of rows) {
      if (row.status === "error") continue;
      if (row.state_kind === "delta" && !seen.has(key(row.session_id, row.iteration - 1))) lacking.push(row);
      seen.add(key(row.session_id, row.iteration));
    }
    if (lacking.length === 0) return new Map();
    const found = (await this.#pool.query(
      `select w.number, t.session_id, t.iteration, t.state_kind, t.base_iteration, t.state::text as state
       from unnest($1::text[], $2::integer[], $3::integer[], $4::integer[]) as w (session_id, first, last, number)
       join agent_steps t on t.session_id = w.session_id and t.iteration between w.first and w.last and t.place = ${LAST_PLACE}
       order by w.number, t.iteration`,
      ...stretchArrays(
        lacking.map((row) => ({ session_id: row.session_id, first: row.base_iteration, last: row.iteration - 1 })),
      ),
      arrayOf(lacking.map((_, at) => at)),
    )) as StepRow[];
    const byNumber = Map.groupBy(found, ({ number }) => Number(number));
    return new Map(lacking.map((row, at) => [row, byNumber.get(at) ?? []]));
  }
}

function extend(chains: Map<string, Chain>, row: StepRow): Chain {
  const chain = readState(chains.get(row.session_id) ?? null, row);
  chains.set(row.session_id, chain);
  return chain;
}

const stretchArrays = (parts: Stretch[]): [string, string, string] => [
  arrayOf(parts.map(({ session_id }) => session_id)),
  arrayOf(parts.map(({ first }) => first)),
  arrayOf(parts.map(({ last }) => last)),
];

function conditions({ since_created_at, status }: StepFilter, next: number): string {
  const since = since_created_at === undefined ? "" : `and t.created_at >= $${next}::timestamptz`;
  return `${since}${status === undefined ? "" : ` and t.status = $${since ? next + 1 : next}`}`;
}

const conditionValues = ({ since_created_at, status }: StepFilter): Parameter[] =>
  [since_created_at, status].filter((value) => value !== undefined);
