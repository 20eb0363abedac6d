import type { Action } from "../../data/queries.ts";

/** The sender: a person, an agent whose message was forwarded, or a child that ended. */
export function senderOf(said: unknown, action: Action | undefined): string {
  const named = [said, action?.metadata].map(nameIn).find((name) => name !== null);
  return named ?? "someone through the API";
}

function nameIn(value: unknown): string | null {
  if (typeof value !== "object" || value === null) return null;
  const { user_id, agent_id, child } = value as { user_id?: unknown; agent_id?: unknown; child?: unknown };
  if (typeof user_id === "string") return user_id;
  return typeof agent_id === "string" ? `agent ${agent_id}` : nameIn(child);
}
