import type { JsonObject } from "../../domain/json.ts";
import type { SearchHit } from "../../domain/search.ts";
import type { Session } from "../../domain/session.ts";
import type { StoredStep } from "../step-pages.ts";
import type { LoadedSession } from "./engine.ts";
import type { Found } from "./history.ts";
import type { EmbeddedTables, Values } from "./tables.ts";

/** Rows of the journal and of LanceDB as the port's. */
export function toSession(tables: EmbeddedTables, { values, params, context, chain }: LoadedSession): Session {
  const state = chain?.state ?? (context === null ? {} : (JSON.parse(context) as JsonObject));
  return { ...tables.toPort("agent_state", values), params: JSON.parse(params) as JsonObject, context: state };
}

export const toStoredStep = (tables: EmbeddedTables, values: Values): StoredStep => ({
  stored: tables.toStored("agent_steps", values),
  port: tables.toPort("agent_steps", values),
});

export function toHit(tables: EmbeddedTables, { table, score, values }: Found): SearchHit {
  if (table === "agent_steps") {
    const { text, session_id, iteration } = tables.toPort(table, values);
    return { kind: "step", score, text: text ?? "", session_id, iteration };
  }
  const { text, conversation_id, message_id, session_id } = tables.toPort(table, values);
  const hit = { kind: "message" as const, score, text: text ?? "", conversation_id, message_id };
  return session_id === null ? hit : { ...hit, session_id };
}
