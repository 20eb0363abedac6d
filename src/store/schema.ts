import type { Action } from "../domain/action.ts";
import type { AgentConfig } from "../domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../domain/conversation.ts";
import type { Session } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import type { ArchivedRange, Volume } from "../domain/volume.ts";
import type { StoredDelivery, StoredWebhook } from "../domain/webhook.ts";
import type { StoredState } from "./state-delta.ts";

/**
 * The columns of every table, written once. Both engines derive their column lists, encoders, decoders, statements and
 * Arrow schemas from this file.
 *
 * SCHEMA-1  Every field of a port row has exactly one column, of a kind that fits its type: a missing, extra or mismatched column
 *           does not compile.
 * SCHEMA-2  The order of columns is part of the embedded format. A new column goes to the end of its table, and comes with
 *           one migration of each engine; rows that were stored before have null in it, or what `MISSING_VALUES` says.
 * SCHEMA-3  `MISSING_VALUES` of a column never change: the embedded engine does not store what a row has of it at its end.
 */
export type Kind = "text" | "time" | "integer" | "bigint" | "float" | "boolean" | "json" | "json_text" | "exact_json";

/** `own`: only the store knows the column. `document`: large and seldom changed, so kept out of rows that every step rewrites. */
type Definition<Allowed extends Kind = Kind> = Allowed | { own: Allowed } | { document: Allowed };
export type Schema = Readonly<Record<TableName, Readonly<Record<string, Definition>>>>;

/**
 * The kinds that can hold a field. `exact_json` is JSON text, kept to the letter; `json` may reorder keys; `json_text` is a
 * document in a column of texts.
 */
type KindFor<Field> = [NonNullable<Field>] extends [string]
  ? "text" | "time" | "exact_json"
  : [NonNullable<Field>] extends [number]
    ? "integer" | "bigint" | "float"
    : [NonNullable<Field>] extends [boolean]
      ? "boolean"
      : "json" | "json_text";
/** The columns that a table must have for its rows. `satisfies` this keeps SCHEMA-1. */
export type Columns<Row, Own = unknown> = {
  readonly [Name in keyof Row]-?: KindFor<Row[Name]> | { document: KindFor<Row[Name]> };
} & { readonly [Name in keyof Own]-?: { own: KindFor<Own[Name]> } };

/**
 * Where a session's state is rebuilt from, null where its row has it, how many of its attempts failed, and the session of
 * `spawned_by`, by which lists are made.
 */
type SessionProgress = { base_iteration: number | null; error_rows: number; spawner_id: string | null };
/** Dense and ascending within a conversation, so that a page is a range. */
type Numbered = { number: number };

/** Rows as they are stored: the port's fields, states as JSON text, and the store's own columns. */
export type StoredRows = {
  agent_state: Omit<Session, "context"> & { context: string | null } & SessionProgress;
  agent_steps: Omit<Step, "state"> & StoredState;
  queue: Action;
  conversations: Conversation;
  conversation_participants: Participant;
  conversation_messages: Message & Numbered;
  session_cursors: SessionCursor;
  agent_config: AgentConfig;
  webhooks: StoredWebhook;
  webhook_deliveries: StoredDelivery;
  volumes: Volume;
  archived_ranges: ArchivedRange;
};
export type TableName = keyof StoredRows;

/** Rows of the port, without the state, which is rebuilt. */
export type PortRows = {
  agent_state: Omit<Session, "context">;
  agent_steps: Omit<Step, "state">;
  queue: Action;
  conversations: Conversation;
  conversation_participants: Participant;
  conversation_messages: Message;
  session_cursors: SessionCursor;
  agent_config: AgentConfig;
  webhooks: StoredWebhook;
  webhook_deliveries: StoredDelivery;
  volumes: Volume;
  archived_ranges: ArchivedRange;
};

export const SCHEMA = {
  agent_state: {
    session_id: "text",
    agent_id: "text",
    conversation_id: "text",
    moniker: "text",
    params: { document: "json" },
    options: "json",
    status: "text",
    stop_reason: "text",
    iteration: "integer",
    step_token: "text",
    next_step_token: "text",
    result: "json",
    context: { document: "exact_json" },
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
    base_iteration: { own: "integer" },
    error_rows: { own: "integer" },
    pause_reason: "json",
    started_attempt: "json",
    question: "json_text",
    wake_at: "time",
    rests_since: "time",
    spawned_by: "json",
    spawner_id: { own: "text" },
    retry_at: "time",
    cost_usd: "float",
    step_started_at: "time",
  } satisfies Columns<Omit<Session, "context"> & { context: string | null }, SessionProgress>,
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
    state: "exact_json",
    state_kind: { own: "text" },
    base_iteration: { own: "integer" },
    guidance: "json",
    notes: "text",
    latency_ms: "float",
    tokens_used: "bigint",
    error: "text",
    action_ids: "json",
    moniker_version: "text",
    cost_usd: "float",
    attempts: "integer",
    calls: "json",
    directives: "json",
    crashes: "integer",
  } satisfies Columns<Omit<Step, "state"> & { state: string }, Omit<StoredState, "state">>,
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
  } satisfies Columns<Action>,
  conversations: {
    conversation_id: "text",
    title: "text",
    created_by: "text",
    status: "text",
    tags: "json",
    created_at: "time",
  } satisfies Columns<Conversation>,
  conversation_participants: {
    participant_id: "text",
    conversation_id: "text",
    user_id: "text",
    agent_id: "text",
    session_id: "text",
    role: "text",
    joined_at: "time",
    left_at: "time",
  } satisfies Columns<Participant>,
  conversation_messages: {
    message_id: "text",
    conversation_id: "text",
    number: { own: "integer" },
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
  } satisfies Columns<Message, Numbered>,
  session_cursors: {
    session_id: "text",
    conversation_id: "text",
    message_id: "text",
    updated_at: "time",
  } satisfies Columns<SessionCursor>,
  agent_config: {
    agent_id: "text",
    moniker: "text",
    params: "json",
    options: "json",
    description: "text",
    updated_at: "time",
  } satisfies Columns<AgentConfig>,
  webhooks: {
    webhook_id: "text",
    url: "text",
    events: "json",
    agent_id: "text",
    secret: "text",
    former_secret: "text",
    former_secret_until: "time",
    created_at: "time",
    updated_at: "time",
  } satisfies Columns<StoredWebhook>,
  webhook_deliveries: {
    delivery_id: "text",
    webhook_id: "text",
    event: "text",
    session_id: "text",
    agent_id: "text",
    status: "text",
    attempts: "integer",
    response_status: "integer",
    last_error: "text",
    created_at: "time",
    last_attempt_at: "time",
    next_attempt_at: "time",
    ended_at: "time",
    retry_until: "time",
    moniker: "text",
    session_status: "text",
    stop_reason: "text",
    question: "json_text",
    result: "json",
    is_result_left_out: "boolean",
    session_error: "text",
  } satisfies Columns<StoredDelivery>,
  volumes: {
    volume_id: "text",
    state: "text",
    location: "text",
    format: "integer",
    created_at: "time",
    sessions: "integer",
    steps: "integer",
    messages: "integer",
    bytes: "bigint",
    oldest_ended_at: "time",
    newest_ended_at: "time",
    checksum: "bigint",
  } satisfies Columns<Volume>,
  archived_ranges: {
    range_id: "text",
    volume_id: "text",
    kind: "text",
    state: "text",
    owner_id: "text",
    agent_id: "text",
    first: "integer",
    last: "integer",
    error_rows: "integer",
    first_row: "integer",
    rows: "integer",
  } satisfies Columns<ArchivedRange>,
} as const satisfies Schema;

/** Values of non-null fields for rows that were stored before their column existed (SCHEMA-3). */
export const MISSING_VALUES: { readonly [Name in TableName]?: Partial<PortRows[Name]> } = {
  agent_state: { cost_usd: 0 },
  agent_steps: { cost_usd: 0, attempts: 1, calls: [], crashes: 0 },
};

export const TABLE_NAMES = Object.keys(SCHEMA) as TableName[];

/** Tables that are not part of a batch: `WebhookStore` writes them, and commits that make an event. */
export const WEBHOOK_TABLES = ["webhooks", "webhook_deliveries"] as const satisfies TableName[];
export type WebhookTable = (typeof WEBHOOK_TABLES)[number];
/** Which rows are in volumes. No batch names these either. */
export const VOLUME_TABLES = ["volumes", "archived_ranges"] as const satisfies TableName[];
export type BookkeepingTable = WebhookTable | (typeof VOLUME_TABLES)[number];
export const BOOKKEEPING_TABLES: readonly BookkeepingTable[] = [...WEBHOOK_TABLES, ...VOLUME_TABLES];
export type BatchTable = Exclude<TableName, BookkeepingTable>;
export const BATCH_TABLES = TABLE_NAMES.filter(
  (table): table is BatchTable => !(BOOKKEEPING_TABLES as readonly string[]).includes(table),
);

export type Column = { name: string; kind: Kind; isOwn: boolean; isDocument: boolean };

export function columnsOf(schema: Schema, table: TableName): Column[] {
  return Object.entries(schema[table]).map(([name, definition]) => {
    if (typeof definition === "string") return { name, kind: definition, isOwn: false, isDocument: false };
    return "own" in definition
      ? { name, kind: definition.own, isOwn: true, isDocument: false }
      : { name, kind: definition.document, isOwn: false, isDocument: true };
  });
}

export const perTable = <Result>(make: (table: TableName) => Result): Record<TableName, Result> =>
  Object.fromEntries(TABLE_NAMES.map((table) => [table, make(table)])) as Record<TableName, Result>;
