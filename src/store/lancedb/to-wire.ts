import { isFinal } from "../../domain/receipt.ts";
import type { SessionPlan } from "../owned-sessions.ts";
import type { Batch } from "../store.ts";
import { type PackedRow, pack } from "./packed-rows.ts";
import { composedKey, type EmbeddedTables, type TableName } from "./tables.ts";
import type { WireRows, WireSession } from "./wire.ts";

/** A batch as the journal's thread takes it. Sessions and steps were planned before: their states are differences. */
export function toWire(tables: EmbeddedTables, batch: Batch, plans: SessionPlan[]): WireRows {
  const packed = (table: TableName, row: Record<string, unknown>): PackedRow => pack(tables, table, row);
  const { messages, actions, conversations, participants, cursors, agent_configs } = batch;
  // Only what is there: an empty list costs its share of every crossing.
  const wire: WireRows = {};
  if (plans.length > 0) {
    wire.sessions = plans.map((plan) => toWireSession(tables, plan));
    wire.agent_steps = plans.flatMap(({ steps }) =>
      steps.map(({ step, stored }) => packed("agent_steps", { ...step, ...stored })),
    );
  }
  if (messages) wire.conversation_messages = messages.map((row) => packed("conversation_messages", row));
  if (actions) wire.actions = actions.map((row) => ({ final: isFinal(row), packed: packed("queue", row) }));
  if (conversations)
    wire.conversations = conversations.map(({ kind, conversation }) => ({
      create: kind === "create",
      packed: packed("conversations", conversation),
    }));
  if (participants)
    wire.conversation_participants = participants.map((row) => packed("conversation_participants", row));
  if (cursors)
    wire.session_cursors = cursors.map((row) => packed("session_cursors", { ...row, cursor_key: cursorKey(row) }));
  if (agent_configs) wire.agent_config = agent_configs.map((row) => packed("agent_config", row));
  return wire;
}

function toWireSession(
  tables: EmbeddedTables,
  { write, session, last, base_iteration, after, context }: SessionPlan,
): WireSession {
  const spawner_id = session.spawned_by?.session_id ?? null;
  const packed = pack(tables, "agent_state", { ...session, base_iteration, error_rows: after.error_rows, spawner_id });
  const document = context === null ? {} : { context };
  return write.kind === "create"
    ? { create: true, packed, params: JSON.stringify(session.params), spawner_id, ...document }
    : { create: false, packed, status_changed: last.status !== session.status, ...document };
}

export const cursorKey = (cursor: { session_id: string; conversation_id: string }): string =>
  composedKey(cursor.session_id, cursor.conversation_id);
