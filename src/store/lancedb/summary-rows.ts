import { SESSION_STATUSES } from "../../domain/session.ts";
import { folded } from "../../domain/words.ts";
import type { StoreCounts, SummaryFilter } from "../store.ts";
import type { Journal } from "./journal.ts";
import type { Value, Values } from "./tables.ts";

export type FoundSummaries = { rows: Values[]; total: number; counts: StoreCounts["sessions"] };

type Condition = { sql: string; values: Value[] };

const SEARCHED =
  "folded(session_id || ' ' || agent_id || ' ' || moniker || ' ' || substr(coalesce(result, ''), 1, 400))";
const BY_LIMIT = "(status = 'stopped' AND stop_reason IN ('max_steps', 'max_runtime_s', 'max_tokens'))";

/** `needing` are live sessions that wait for a person: memory knows them. */
export function findSummaries(journal: Journal, filter: SummaryFilter, needing: string[]): FoundSummaries {
  const wide = conditions(filter, needing);
  const narrow = filter.statuses ? [...wide, among("status", filter.statuses)] : wide;
  const { sql, values } = all(narrow);
  const rows = journal.snapshots(
    "agent_state",
    `${sql} ORDER BY arrival DESC LIMIT ? OFFSET ?`,
    ...values,
    filter.limit,
    filter.offset,
  );
  const counts = countByStatus(journal, all(wide));
  const total = (filter.statuses ?? [...SESSION_STATUSES]).reduce((sum, status) => sum + counts[status], 0);
  return { rows, total, counts };
}

function conditions(
  { agent_id, moniker, q, session_ids, needs_person }: SummaryFilter,
  needing: string[],
): Condition[] {
  const found: Condition[] = [];
  if (agent_id !== undefined) found.push({ sql: "agent_id = ?", values: [agent_id] });
  if (moniker !== undefined) found.push({ sql: "moniker = ?", values: [moniker] });
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
