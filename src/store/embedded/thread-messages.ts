import { type ErrorCode, EverstepError } from "../../domain/errors.ts";
import { isFinal } from "../../domain/receipt.ts";
import type { StoredDelivery } from "../../domain/webhook.ts";
import type { SessionPlan } from "../owned-sessions.ts";
import type { Batch, CommitOutcome } from "../store.ts";
import { composedKey, type EmbeddedTables, type PackedRow, pack, type TableName } from "./tables.ts";

/** A batch sent to the journal's thread: rows packed, states as stored. */
export type BatchMessage = RowsMessage & {
  /** The position of its first row; the others follow. It shows whether the batch was written before its thread died. */
  first: number;
};
export type RowsMessage = Partial<{
  sessions: SessionMessage[];
  agent_steps: PackedRow[];
  conversation_messages: PackedRow[];
  actions: { final: boolean; packed: PackedRow }[];
  conversations: { create: boolean; packed: PackedRow }[];
  conversation_participants: PackedRow[];
  session_cursors: PackedRow[];
  agent_config: PackedRow[];
  webhook_deliveries: PackedRow[];
}>;

export type SessionMessage = {
  create: boolean;
  packed: PackedRow;
  /** For an existing session, if it changed. */
  status?: string;
  /** For a new one: the session that started it. */
  spawner_id?: string | null;
  /** JSON text, written once. */
  params?: string;
  /** JSON text; written if it cannot be rebuilt from steps: at the start and end of a session. */
  context?: string;
};

/**
 * A batch as it is sent. A step and nothing else, as most batches are, is a list: that crosses the threads in a fifth of the time
 * that objects take, since those carry the names of their fields along.
 */
export type SentBatch = StepList | BatchMessage;
type StepList = [first: number, session_id: string, session_row: string, step_row: string];

export function toSent(batch: BatchMessage): SentBatch {
  const { first, sessions, agent_steps, ...others } = batch;
  const [session, step] = [sessions?.[0], agent_steps?.[0]];
  const isOneStep = session && step && sessions?.length === 1 && agent_steps?.length === 1;
  if (!isOneStep || Object.keys(others).length > 0) return batch;
  const { create, packed, status, context } = session;
  if (create || status !== undefined || context !== undefined) return batch;
  return [first, packed.named[0] as string, packed.row, step.row];
}

export function fromSent(sent: SentBatch): BatchMessage {
  if (!Array.isArray(sent)) return sent;
  const [first, session_id, session_row, step_row] = sent;
  const named = [session_id];
  return {
    first,
    sessions: [{ create: false, packed: { row: session_row, named } }],
    agent_steps: [{ row: step_row, named }],
  };
}

export type OutcomeMessage =
  | Exclude<CommitOutcome, { kind: "fenced" | "queue_not_empty" }>
  | { kind: "failed"; error: PackedError };

/** How many rows a batch writes, and their characters. */
export function measure(message: RowsMessage): Size {
  const size = { rows: 0, characters: 0 };
  if (message.sessions)
    for (const { packed, params, context } of message.sessions) {
      count(size, packed);
      size.characters += (params?.length ?? 0) + (context?.length ?? 0);
    }
  if (message.actions) for (const { packed } of message.actions) count(size, packed);
  if (message.conversations) for (const { packed } of message.conversations) count(size, packed);
  countAll(size, message.agent_steps);
  countAll(size, message.conversation_messages);
  countAll(size, message.conversation_participants);
  countAll(size, message.session_cursors);
  countAll(size, message.agent_config);
  // They have no position.
  for (const { row } of message.webhook_deliveries ?? []) size.characters += row.length;
  return size;
}

function count(size: Size, { row }: PackedRow): void {
  size.rows += 1;
  size.characters += row.length;
}

function countAll(size: Size, rows: readonly PackedRow[] | undefined): void {
  if (rows) for (const packed of rows) count(size, packed);
}

/** The same for the rows of several batches that will be archived. */
export function measureHistory(batches: readonly RowsMessage[]): Size {
  const size = { rows: 0, characters: 0 };
  for (const { agent_steps, conversation_messages, actions } of batches) {
    countAll(size, agent_steps);
    countAll(size, conversation_messages);
    if (actions) for (const { final, packed } of actions) if (final) count(size, packed);
  }
  return size;
}

export type Size = { rows: number; characters: number };

/** An error sent across threads, which would lose its class. */
export type PackedError = { code: ErrorCode | null; message: string; next: string; stack: string };

export function packError(error: unknown): PackedError {
  const coded = error instanceof EverstepError ? error : null;
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { code: coded?.code ?? null, message, next: coded?.next ?? "", stack: stack ?? message };
}

export function unpackError({ code, message, next, stack }: PackedError): Error {
  const cause = Object.assign(new Error(message), { stack });
  if (code === null) return cause;
  const what = message.slice(code.length + 2, message.length - next.length - 2);
  return new EverstepError(code, what, next, cause);
}

/** A batch for the journal's thread. Sessions and steps are already planned: their states are deltas. */
export function toRowsMessage(
  tables: EmbeddedTables,
  batch: Batch,
  plans: SessionPlan[],
  deliveries: readonly StoredDelivery[],
): RowsMessage {
  const packed = (table: TableName, row: Record<string, unknown>): PackedRow => pack(tables, table, row);
  const { messages, actions, conversations, participants, cursors, agent_configs } = batch;
  // Omits empty lists: each costs a share of every crossing.
  const message: RowsMessage = {};
  if (plans.length > 0) {
    message.sessions = plans.map((plan) => toSessionMessage(tables, plan));
    message.agent_steps = [];
    for (const { steps } of plans)
      for (const { step, stored } of steps) message.agent_steps.push(pack(tables, "agent_steps", step, stored));
  }
  if (messages) message.conversation_messages = messages.map((row) => packed("conversation_messages", row));
  if (actions) message.actions = actions.map((row) => ({ final: isFinal(row), packed: packed("queue", row) }));
  if (conversations)
    message.conversations = conversations.map(({ kind, conversation }) => ({
      create: kind === "create",
      packed: packed("conversations", conversation),
    }));
  if (participants)
    message.conversation_participants = participants.map((row) => packed("conversation_participants", row));
  if (cursors)
    message.session_cursors = cursors.map((row) =>
      pack(tables, "session_cursors", row, { cursor_key: cursorKey(row) }),
    );
  if (deliveries.length > 0) message.webhook_deliveries = deliveries.map((row) => packed("webhook_deliveries", row));
  if (agent_configs) message.agent_config = agent_configs.map((row) => packed("agent_config", row));
  return message;
}

function toSessionMessage(
  tables: EmbeddedTables,
  { write, session, last, base_iteration, after, context }: SessionPlan,
): SessionMessage {
  const spawner_id = session.spawned_by?.session_id ?? null;
  const packed = pack(tables, "agent_state", session, { base_iteration, error_rows: after.error_rows, spawner_id });
  const message: SessionMessage = { create: write.kind === "create", packed };
  if (write.kind === "create") {
    message.params = JSON.stringify(session.params);
    message.spawner_id = spawner_id;
  } else {
    packed.named.length = 1; // Except for the status, the others do not change.
    if (last.status !== session.status) message.status = session.status;
  }
  if (context !== null) message.context = context;
  return message;
}

export const cursorKey = (cursor: { session_id: string; conversation_id: string }): string =>
  composedKey(cursor.session_id, cursor.conversation_id);
