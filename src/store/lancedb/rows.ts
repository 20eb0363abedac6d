import type { Action } from "../../domain/action.ts";
import type { Message, SessionCursor } from "../../domain/conversation.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { SearchHit } from "../../domain/search.ts";
import type { Session } from "../../domain/session.ts";
import type { StoredStep } from "../step-pages.ts";
import type { LoadedSession } from "./engine.ts";
import type { Found } from "./history.ts";
import { type StoredRows, toRow, type Values } from "./tables.ts";

/** Stored rows as the port's: without what only the store needs. */
export function toAction(values: Values): Action {
  const { pos: _, ...action } = toRow("queue", values);
  return action;
}

export function toMessage(values: Values): Message {
  const { pos: _, number: __, ...message } = toRow("conversation_messages", values);
  return message;
}

export function toStoredStep(values: Values): StoredStep {
  const { pos: _, ...stored } = toRow("agent_steps", values);
  const { state_kind: __, base_iteration: ___, state: ____, ...port } = stored;
  return { stored, port };
}

export function toCursor(values: Values): SessionCursor {
  const { pos: _, cursor_key: __, ...cursor } = toRow("session_cursors", values);
  return cursor;
}

type Plain = "agent_config" | "conversations" | "conversation_participants";
export function toPlain<Name extends Plain>(table: Name, values: Values): Omit<StoredRows[Name], "pos"> {
  const { pos: _, ...row } = toRow(table, values);
  return row;
}

export function toSession({ values, params, context, chain }: LoadedSession): Session {
  const { pos: _, base_iteration: __, error_rows: ___, ...row } = toRow("agent_state", values);
  const state = chain?.state ?? (context === null ? {} : (JSON.parse(context) as JsonObject));
  return { ...row, params: JSON.parse(params) as JsonObject, context: state };
}

export function toHit({ table, score, values }: Found): SearchHit {
  if (table === "agent_steps") {
    const { text, session_id, iteration } = toRow(table, values);
    return { kind: "step", score, text: text ?? "", session_id, iteration };
  }
  const { text, conversation_id, message_id, session_id } = toRow(table, values);
  const hit = { kind: "message" as const, score, text: text ?? "", conversation_id, message_id };
  return session_id === null ? hit : { ...hit, session_id };
}
