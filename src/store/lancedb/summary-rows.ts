import { SESSION_STATUSES } from "../../domain/session.ts";
import { folded } from "../../domain/words.ts";
import type { ListPlace, SessionSort, StoreCounts, SummaryFilter } from "../store.ts";
import type { Journal } from "./journal.ts";
import type { Value, Values } from "./tables.ts";

export type FoundSummaries = { rows: Values[]; total: number; counts: StoreCounts["sessions"] };

type Condition = { sql: string; values: Value[] };

const SEARCHED = "searched_text(session_id, agent_id, moniker, result)";
const BY_LIMIT = "(status = 'stopped' AND stop_reason IN ('max_steps', 'max_runtime_s', 'max_tokens'))";

/** `needing` are live sessions that wait for a person: memory knows them. */
export function findSummaries(journal: Journal, filter: SummaryFilter, needing: string[]): FoundSummaries {
  const page = listClause(journal, filter, needing);
  const rows = journal.snapshots("agent_state", page.sql, ...page.values);
  const counts = countByStatus(journal, all(conditions(filter, needing)));
  const total = [...new Set(filter.statuses ?? SESSION_STATUSES)].reduce((sum, status) => sum + counts[status], 0);
  return { rows, total, counts };
}

/** The end of a statement that reads a page of `agent_state`. Rows are numbered as they are written, whatever clocks say. */
export function listClause(journal: Journal, filter: SummaryFilter, needing: string[]): Condition {
  const { sort = "created_at", after, statuses, limit, offset } = filter;
  const wanted = conditions(filter, needing);
  if (statuses) wanted.push(among("status", statuses));
  if (after) wanted.push(beyond(journal, sort, after));
  const { sql, values } = all(wanted);
  const order = sort === "created_at" ? "arrival DESC" : "updated_at DESC, arrival DESC";
  return { sql: `${sql} ORDER BY ${order} LIMIT ? OFFSET ?`, values: [...values, limit, offset] };
}

function beyond(journal: Journal, sort: SessionSort, { session_id, at }: ListPlace): Condition {
  const [arrival] = journal.query("SELECT arrival FROM agent_state WHERE session_id = ?", session_id)[0] ?? [];
  if (arrival === undefined) return { sql: `${sort} <= ?`, values: [at] };
  return sort === "created_at"
    ? { sql: "arrival < ?", values: [arrival] }
    : { sql: "(updated_at, arrival) < (?, ?)", values: [at, arrival] };
}

function conditions(
  { agent_id, moniker, q, session_ids, needs_person, spawned_by }: SummaryFilter,
  needing: string[],
): Condition[] {
  const found: Condition[] = [];
  if (agent_id !== undefined) found.push({ sql: "agent_id = ?", values: [agent_id] });
  if (moniker !== undefined) found.push({ sql: "moniker = ?", values: [moniker] });
  if (spawned_by !== undefined)
    found.push({
      sql: "session_id IN (SELECT session_id FROM spawned_sessions WHERE spawner_id = ?)",
      values: [spawned_by],
    });
  if (q !== undefined) found.push({ sql: `instr(${SEARCHED}, ?) > 0`, values: [folded(q)] });
  if (session_ids) found.push(among("session_id", session_ids));
  if (needs_person) {
    const needs = among("session_id", needing);
    found.push({ sql: `(status = 'error' OR ${BY_LIMIT} OR ${needs.sql})`, values: needs.values });
  }
  return found;
}

const among = (column: string, list: readonly string[]): Condition => ({
  sql: `${column} IN (SELECT value FROM json_each(?))`,
  values: [JSON.stringify(list)],
});

const all = (found: Condition[]): Condition => ({
  sql: found.length > 0 ? `WHERE ${found.map(({ sql }) => sql).join(" AND ")}` : "",
  values: found.flatMap(({ values }) => values),
});

function countByStatus(journal: Journal, { sql, values }: Condition): StoreCounts["sessions"] {
  const counts = Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0])) as StoreCounts["sessions"];
  for (const [status, count] of journal.query(
    `SELECT status, count(*) FROM agent_state ${sql} GROUP BY status`,
    ...values,
  ))
    counts[status as keyof typeof counts] = Number(count);
  return counts;
}
