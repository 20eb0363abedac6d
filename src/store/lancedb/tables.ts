import type { Action } from "../../domain/action.ts";
import type { AgentConfig } from "../../domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../../domain/conversation.ts";
import { parseDefensively } from "../../domain/json.ts";
import type { Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import type { StoredState } from "../state-chain.ts";
import { fromText, toText } from "./exact-text.ts";

/**
 * Every table once: the journal (SQLite) and the history (LanceDB) are both made from these columns, and rows cross
 * thread borders as lists of values in this order. A new column goes to the end of its table and into a migration
 * (`migrations.ts`): rows that were stored before have no value for it, which reads as null.
 */
type ColumnKind = "text" | "integer" | "real" | "flag" | "json";
export type Column = { name: string; kind: ColumnKind };
export type Value = string | number | null;
export type Values = Value[];

const columns = (kinds: Record<string, ColumnKind>): Column[] =>
  Object.entries(kinds).map(([name, kind]) => ({ name, kind }));

/** Append-only: rows wait in the journal until they are moved into LanceDB. */
export const HISTORY = {
  agent_steps: columns({
    pos: "integer",
    id: "text",
    created_at: "text",
    agent_id: "text",
    session_id: "text",
    iteration: "integer",
    step_token: "text",
    next_step_token: "text",
    status: "text",
    text: "text",
    data: "json",
    state: "text",
    state_kind: "text",
    base_iteration: "integer",
    guidance: "json",
    notes: "text",
    latency_ms: "real",
    tokens_used: "integer",
    error: "text",
    action_ids: "json",
  }),
  conversation_messages: columns({
    pos: "integer",
    message_id: "text",
    conversation_id: "text",
    /** Dense and ascending within a conversation, so that a page is a range. */
    number: "integer",
    created_at: "text",
    sender_type: "text",
    user_id: "text",
    agent_id: "text",
    session_id: "text",
    text: "text",
    data: "json",
    status: "text",
    event_type: "text",
    iteration: "integer",
    step_token: "text",
    next_step_token: "text",
    notes: "text",
    action_ids: "json",
  }),
  queue: columns({
    pos: "integer",
    action_id: "text",
    created_at: "text",
    action_type: "text",
    agent_id: "text",
    session_id: "text",
    payload: "json",
    metadata: "json",
    urgency: "integer",
    processed: "flag",
    processed_at: "text",
    outcome: "text",
    error: "text",
    attempts: "integer",
    run_at: "text",
    receipt: "text",
    consumed_iteration: "integer",
  }),
} as const;

/** Rows that change: the journal keeps them for good, LanceDB receives a copy from time to time. The first column is the key. */
const SNAPSHOTS = {
  agent_state: columns({
    session_id: "text",
    pos: "integer",
    agent_id: "text",
    conversation_id: "text",
    moniker: "text",
    options: "json",
    status: "text",
    stop_reason: "text",
    iteration: "integer",
    step_token: "text",
    next_step_token: "text",
    result: "json",
    pending_guidance: "json",
    pending_action_ids: "json",
    last_error: "text",
    tokens_used: "integer",
    created_action_id: "text",
    parent_session_id: "text",
    parent_iteration: "integer",
    created_at: "text",
    updated_at: "text",
    ended_at: "text",
    /** The iteration of the whole state from which `context` is rebuilt; null where the documents hold it. */
    base_iteration: "integer",
    error_rows: "integer",
    pause_reason: "json",
    started_attempt: "json",
  }),
  agent_config: columns({
    agent_id: "text",
    pos: "integer",
    moniker: "text",
    params: "json",
    options: "json",
    description: "text",
    updated_at: "text",
  }),
  conversations: columns({
    conversation_id: "text",
    pos: "integer",
    title: "text",
    created_by: "text",
    status: "text",
    tags: "json",
    created_at: "text",
  }),
  conversation_participants: columns({
    participant_id: "text",
    pos: "integer",
    conversation_id: "text",
    user_id: "text",
    agent_id: "text",
    session_id: "text",
    role: "text",
    joined_at: "text",
    left_at: "text",
  }),
  session_cursors: columns({
    cursor_key: "text",
    pos: "integer",
    session_id: "text",
    conversation_id: "text",
    message_id: "text",
    updated_at: "text",
  }),
} as const;

export type HistoryName = keyof typeof HISTORY;
export type SnapshotName = keyof typeof SNAPSHOTS;
export type TableName = HistoryName | SnapshotName;
export const HISTORY_NAMES = Object.keys(HISTORY) as HistoryName[];
export const SNAPSHOT_NAMES = Object.keys(SNAPSHOTS) as SnapshotName[];
export const TABLES: Readonly<Record<TableName, readonly Column[]>> = { ...HISTORY, ...SNAPSHOTS };

/** Joins the parts of a composed key. Ids have no control characters, so no two keys can be confused. */
const KEY_SEPARATOR = "\u0001";
export const composedKey = (...parts: string[]): string => parts.join(KEY_SEPARATOR);
export const splitKey = (key: string): string[] => key.split(KEY_SEPARATOR);

/** The row's fields in column order; a field that the row does not have is null. */
export function toValues(table: TableName, row: Record<string, unknown>): Values {
  return TABLES[table].map(({ name, kind }) => {
    const value = row[name];
    if (kind === "json") return JSON.stringify(value ?? null);
    if (value === undefined || value === null) return null;
    if (kind === "flag") return Number(value);
    return typeof value === "string" ? toText(value) : (value as Value);
  });
}

/** A row as it is stored: what the port's row has, and what only the store needs. */
export type StoredRows = {
  agent_steps: Omit<Step, "state"> & StoredState & { pos: number };
  conversation_messages: Message & { pos: number; number: number };
  queue: Action & { pos: number };
  agent_state: Omit<Session, "params" | "context"> & { pos: number; base_iteration: number | null; error_rows: number };
  agent_config: AgentConfig & { pos: number };
  conversations: Conversation & { pos: number };
  conversation_participants: Participant & { pos: number };
  session_cursors: SessionCursor & { pos: number; cursor_key: string };
};

export function toRow<Name extends TableName>(table: Name, values: Values): StoredRows[Name] {
  const entries = TABLES[table].map(({ name, kind }, index): [string, unknown] => {
    const value = values[index] ?? null;
    if (kind === "json") return [name, parseDefensively(value as string | null)];
    if (kind === "flag") return [name, Boolean(value)];
    return [name, typeof value === "string" ? fromText(value) : value];
  });
  return Object.fromEntries(entries) as StoredRows[Name];
}
