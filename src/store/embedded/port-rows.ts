import type { JsonObject } from "../../domain/json.ts";
import type { SearchHit } from "../../domain/search.ts";
import { isHeld, isLive, SESSION_STATUSES, type Session } from "../../domain/session.ts";
import { summaryOf } from "../../domain/session-summary.ts";
import { folded } from "../../domain/words.ts";
import type { StoredStep } from "../step-pages.ts";
import type { ListPlace, SessionSort, SessionSummaries, StoreCounts, SummaryFilter } from "../store.ts";
import type { FoundRow } from "./history.ts";
import type { Journal } from "./journal.ts";
import type { LoadedSession } from "./storage-thread.ts";
import type { EmbeddedTables, Value, Values } from "./tables.ts";

/** Rows of the journal and of LanceDB as the port's. */
export function toSession(tables: EmbeddedTables, { values, params, context, chain }: LoadedSession): Session {
  const state = chain?.state ?? (context === null ? {} : (JSON.parse(context) as JsonObject));
  return { ...tables.toPort("agent_state", values), params: JSON.parse(params) as JsonObject, context: state };
}

export const toStoredStep = (tables: EmbeddedTables, values: Values): StoredStep => ({
  stored: tables.toStored("agent_steps", values),
  port: tables.toPort("agent_steps", values),
});

export function toHit(tables: EmbeddedTables, { table, score, values }: FoundRow): SearchHit {
  if (table === "agent_steps") {
    const { text, session_id, iteration } = tables.toPort(table, values);
    return { kind: "step", score, text: text ?? "", session_id, iteration };
  }
  const { text, conversation_id, message_id, session_id } = tables.toPort(table, values);
  const hit = { kind: "message" as const, score, text: text ?? "", conversation_id, message_id };
  return session_id === null ? hit : { ...hit, session_id };
}

/** Live sessions that ask something or are held: memory knows them. */
export const needingSessions = (live: Session[]): string[] =>
  live
    .filter((session) => (session.question !== null && isLive(session.status)) || isHeld(session))
    .map(({ session_id }) => session_id);

/** Summaries from the journal's rows. */
export async function toSummaries(
  tables: EmbeddedTables,
  live: Session[],
  find: (needing: string[]) => Promise<SummaryRows>,
): Promise<SessionSummaries> {
  const { rows, total, counts } = await find(needingSessions(live));
  const sessions = rows.map((values) => summaryOf(tables.toStored("agent_state", values)));
  return { sessions, total, counts, exact: true };
}

export type SummaryRows = { rows: Values[]; total: number; counts: StoreCounts["sessions"] };

type SqlCondition = { sql: string; values: Value[] };

const SEARCHED = "searched_text(session_id, agent_id, moniker, result)";
const BY_LIMIT = "(status = 'stopped' AND stop_reason <> 'destroyed')";

/** `needing` are live sessions that wait for a person: memory knows them. */
export function findSummaries(journal: Journal, filter: SummaryFilter, needing: string[]): SummaryRows {
  const page = listClause(journal, filter, needing);
  const rows = journal.snapshots("agent_state", page.sql, ...page.values);
  const counts = countByStatus(journal, all(conditions(filter, needing)));
  const total = [...new Set(filter.statuses ?? SESSION_STATUSES)].reduce((sum, status) => sum + counts[status], 0);
  return { rows, total, counts };
}

/** The end of a statement that reads a page of `agent_state`. Rows are numbered as they are written, whatever clocks say. */
export function listClause(journal: Journal, filter: SummaryFilter, needing: string[]): SqlCondition {
  const { sort = "created_at", after, statuses, limit, offset } = filter;
  const parts = conditions(filter, needing);
  if (statuses) parts.push(among("status", statuses));
  if (after) parts.push(beyond(journal, sort, after));
  const { sql, values } = all(parts);
  const order = sort === "created_at" ? "arrival DESC" : "updated_at DESC, arrival DESC";
  return { sql: `${sql} ORDER BY ${order} LIMIT ? OFFSET ?`, values: [...values, limit, offset] };
}

function beyond(journal: Journal, sort: SessionSort, { session_id, at }: ListPlace): SqlCondition {
  const [arrival] = journal.query("SELECT arrival FROM agent_state WHERE session_id = ?", session_id)[0] ?? [];
  if (arrival === undefined) return { sql: `${sort} <= ?`, values: [at] };
  return sort === "created_at"
    ? { sql: "arrival < ?", values: [arrival] }
    : { sql: "(updated_at, arrival) < (?, ?)", values: [at, arrival] };
}

function conditions(
  { agent_id, moniker, q, session_ids, needs_person, spawned_by }: SummaryFilter,
  needing: string[],
): SqlCondition[] {
  const parts: SqlCondition[] = [];
  if (agent_id !== undefined) parts.push({ sql: "agent_id = ?", values: [agent_id] });
  if (moniker !== undefined) parts.push({ sql: "moniker = ?", values: [moniker] });
  if (spawned_by !== undefined)
    parts.push({
      sql: "session_id IN (SELECT session_id FROM spawned_sessions WHERE spawner_id = ?)",
      values: [spawned_by],
    });
  if (q !== undefined) parts.push({ sql: `instr(${SEARCHED}, ?) > 0`, values: [folded(q)] });
  if (session_ids) parts.push(among("session_id", session_ids));
  if (needs_person) {
    const needs = among("session_id", needing);
    parts.push({ sql: `(status = 'error' OR ${BY_LIMIT} OR ${needs.sql})`, values: needs.values });
  }
  return parts;
}

const among = (column: string, list: readonly string[]): SqlCondition => ({
  sql: `${column} IN (SELECT value FROM json_each(?))`,
  values: [JSON.stringify(list)],
});

const all = (parts: SqlCondition[]): SqlCondition => ({
  sql: parts.length > 0 ? `WHERE ${parts.map(({ sql }) => sql).join(" AND ")}` : "",
  values: parts.flatMap(({ values }) => values),
});

function countByStatus(journal: Journal, { sql, values }: SqlCondition): StoreCounts["sessions"] {
  const counts = Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0])) as StoreCounts["sessions"];
  for (const [status, count] of journal.query(
    `SELECT status, count(*) FROM agent_state ${sql} GROUP BY status`,
    ...values,
  ))
    counts[status as keyof typeof counts] = Number(count);
  return counts;
}
