import { isFinal } from "../../domain/receipt.ts";
import type { Batch } from "../store.ts";
import type { SessionPlan } from "./live-sessions.ts";
import { pack } from "./packed-rows.ts";
import { composedKey } from "./tables.ts";
import type { WireRows } from "./wire.ts";

/** A batch as the journal's thread takes it. Sessions and steps were planned before: their states are differences. */
export function toWire(batch: Batch, plans: SessionPlan[]): WireRows {
  const { messages, actions, conversations, participants, cursors, agent_configs } = batch;
  // Only what is there: an empty list costs its share of every crossing.
  const wire: WireRows = {};
  if (plans.length > 0) {
    wire.sessions = plans.map((plan) => plan.wire);
    wire.agent_steps = plans.flatMap((plan) => plan.steps);
  }
  if (messages) wire.conversation_messages = messages.map((row) => pack("conversation_messages", row));
  if (actions) wire.actions = actions.map((row) => ({ final: isFinal(row), packed: pack("queue", row) }));
  if (conversations)
    wire.conversations = conversations.map(({ kind, conversation }) => ({
      create: kind === "create",
      packed: pack("conversations", conversation),
    }));
  if (participants) wire.conversation_participants = participants.map((row) => pack("conversation_participants", row));
  if (cursors)
    wire.session_cursors = cursors.map((row) => pack("session_cursors", { ...row, cursor_key: cursorKey(row) }));
  if (agent_configs) wire.agent_config = agent_configs.map((row) => pack("agent_config", row));
  return wire;
}

export const cursorKey = (cursor: { session_id: string; conversation_id: string }): string =>
  composedKey(cursor.session_id, cursor.conversation_id);
