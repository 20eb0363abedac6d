import type { Action } from "../../domain/action.ts";
import type { AgentConfig } from "../../domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../../domain/conversation.ts";
import type { JsonValue } from "../../domain/json.ts";
import type { Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import type { InputColumn } from "./input-columns.ts";
import { fromJson, fromText, type Scalar, toJson, toText } from "./values.ts";

/** How a field of a row is stored. `exact` is JSON text that is kept to the letter, `words` is for search only. */
type Kind = "text" | "json" | "exact" | "integer" | "bigint" | "float" | "boolean" | "time" | "words";
type Columns = Readonly<Record<string, Kind>>;

/** Rows as the port has them, with what the store adds. */
type StoredRow = {
  agent_state: Omit<Session, "context">;
  agent_steps: Omit<Step, "state">;
  queue: Action;
  conversations: Conversation;
  conversation_participants: Participant;
  conversation_messages: Message;
  session_cursors: SessionCursor;
  agent_config: AgentConfig;
};
export type TableName = keyof StoredRow;

/** The place of the step row that succeeded: after every attempt that failed. */
export const LAST_PLACE = 2_147_483_647;

const TABLES: { readonly [Name in TableName]: { readonly [Column in keyof StoredRow[Name]]: Kind } } = {
  agent_state: {
    session_id: "text",
    agent_id: "text",
    conversation_id: "text",
    moniker: "text",
    params: "json",
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
    tokens_used: "bigint",
    created_action_id: "text",
    parent_session_id: "text",
    parent_iteration: "integer",
    created_at: "time",
    updated_at: "time",
    ended_at: "time",
    pause_reason: "json",
    started_attempt: "json",
  },
  agent_steps: {
    id: "text",
    created_at: "time",
    agent_id: "text",
    session_id: "text",
    iteration: "integer",
    step_token: "text",
    next_step_token: "text",
    status: "text",
    text: "text",
    data: "json",
    guidance: "json",
    notes: "text",
    latency_ms: "float",
    tokens_used: "bigint",
    error: "text",
    action_ids: "json",
  },
  queue: {
    action_id: "text",
    created_at: "time",
    action_type: "text",
    agent_id: "text",
    session_id: "text",
    payload: "json",
    metadata: "json",
    urgency: "integer",
    processed: "boolean",
    processed_at: "time",
    outcome: "text",
    error: "text",
    attempts: "integer",
    run_at: "time",
    receipt: "text",
    consumed_iteration: "integer",
  },
  conversations: {
    conversation_id: "text",
    title: "text",
    created_by: "text",
    status: "text",
    tags: "json",
    created_at: "time",
  },
  conversation_participants: {
    participant_id: "text",
    conversation_id: "text",
    user_id: "text",
    agent_id: "text",
    session_id: "text",
    role: "text",
    joined_at: "time",
    left_at: "time",
  },
  conversation_messages: {
    message_id: "text",
    conversation_id: "text",
    created_at: "time",
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
  },
  session_cursors: { session_id: "text", conversation_id: "text", message_id: "text", updated_at: "time" },
  agent_config: {
    agent_id: "text",
    moniker: "text",
    params: "json",
    options: "json",
    description: "text",
    updated_at: "time",
  },
};

const SQL_TYPE: Readonly<Record<Kind, string>> = {
  text: "text",
  json: "jsonb",
  exact: "json",
  integer: "integer",
  bigint: "bigint",
  float: "double precision",
  boolean: "boolean",
  time: "timestamptz",
  words: "tsvector",
};

const COLUMNS = Object.fromEntries(
  Object.entries(TABLES).map(([table, columns]) => [table, Object.entries(columns as Columns)]),
) as Record<TableName, [string, Kind][]>;

export const inputColumns = (table: TableName): InputColumn[] =>
  COLUMNS[table].map(([name, kind]) => ({ name, sql_type: SQL_TYPE[kind] }));

/** What a read of the table selects. */
export const selected = (table: TableName, alias: string): string =>
  COLUMNS[table].map(([name]) => `${alias}.${name}`).join(", ");

/** A row as values, in the order of `inputColumns`; null for those left out. */
export function toValues<Name extends TableName>(
  table: Name,
  row: StoredRow[Name],
  leftOut: ReadonlySet<string> = NONE,
): Scalar[] {
  return COLUMNS[table].map(([name, kind]) =>
    leftOut.has(name) ? null : toValue(kind, (row as Record<string, unknown>)[name]),
  );
}
const NONE: ReadonlySet<string> = new Set();

function toValue(kind: Kind, value: unknown): Scalar {
  // A document that is null is stored as none: nobody can tell the two apart.
  if (value === null || value === undefined) return null;
  if (kind === "json") return toJson(value);
  return kind === "text" ? toText(value as string) : (value as Scalar);
}

/** Columns that were not read are null. */
export function toRow<Name extends TableName>(table: Name, stored: Record<string, unknown>): StoredRow[Name] {
  return Object.fromEntries(
    COLUMNS[table].map(([name, kind]) => [name, fromValue(kind, stored[name])]),
  ) as unknown as StoredRow[Name];
}

function fromValue(kind: Kind, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (kind === "json") return fromJson(value as JsonValue);
  return kind === "text" ? fromText(value as string) : value;
}
