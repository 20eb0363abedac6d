import { isFinal } from "../../domain/action.ts";
import type { Batch } from "../store.ts";
import type { SessionPlan } from "./live-sessions.ts";
import { pack } from "./packed-rows.ts";
import { composedKey } from "./tables.ts";
import type { WireBatch } from "./wire.ts";

/** A batch as the journal's thread takes it. Sessions and steps were planned before: their states are differences. */
export function toWire(batch: Batch, plans: SessionPlan[]): WireBatch {
  return {
    sessions: plans.map((plan) => plan.wire),
    agent_steps: plans.flatMap((plan) => plan.steps),
    conversation_messages: (batch.messages ?? []).map((row) => pack("conversation_messages", row)),
    actions: (batch.actions ?? []).map((row) => ({ final: isFinal(row), packed: pack("queue", row) })),
    conversations: (batch.conversations ?? []).map(({ kind, conversation }) => ({
      create: kind === "create",
      packed: pack("conversations", conversation),
    })),
    conversation_participants: (batch.participants ?? []).map((row) => pack("conversation_participants", row)),
    session_cursors: (batch.cursors ?? []).map((row) =>
      pack("session_cursors", { ...row, cursor_key: cursorKey(row) }),
    ),
    agent_config: (batch.agent_configs ?? []).map((row) => pack("agent_config", row)),
  };
}

export const cursorKey = (cursor: { session_id: string; conversation_id: string }): string =>
  composedKey(cursor.session_id, cursor.conversation_id);
