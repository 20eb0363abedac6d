import { get, pathOf } from "../../data/api.ts";
import type { Session } from "../../data/queries.ts";

const MOST = 500;

/** Downloads a session as JSON: its row, every step with its state, every action. */
export async function exportSession(session_id: string): Promise<void> {
  const session = await get<Session>(pathOf("sessions", session_id));
  const steps = await everyRow("/api/agent-steps", "steps", session_id);
  const actions = await everyRow("/api/actions", "actions", session_id);
  const exported = { exported_at: new Date().toISOString(), session, steps, actions };
  const url = URL.createObjectURL(new Blob([JSON.stringify(exported, null, 2)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `session-${session_id.replaceAll(/[^\w.-]+/g, "_")}.json`;
  link.click();
  URL.revokeObjectURL(url);
}

async function everyRow(path: string, name: string, session_id: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  for (;;) {
    const answer = await get<Record<string, unknown[]>>(path, { session_id, limit: MOST, offset: rows.length });
    const page = answer[name] ?? [];
    rows.push(...page);
    if (page.length < MOST) return rows;
  }
}
