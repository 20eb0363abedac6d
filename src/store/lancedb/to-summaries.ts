import { isHeld, type Session } from "../../domain/session.ts";
import { questionOf, summaryFrom } from "../../domain/session-summary.ts";
import type { SessionSummaries } from "../store.ts";
import type { FoundSummaries } from "./summary-rows.ts";
import type { EmbeddedTables } from "./tables.ts";

/** Summaries from the journal's rows; which live sessions ask something or are held is known in memory. */
export async function toSummaries(
  tables: EmbeddedTables,
  live: Session[],
  find: (needing: string[]) => Promise<FoundSummaries>,
): Promise<SessionSummaries> {
  const questions = new Map(live.map((session) => [session.session_id, questionOf(session)]));
  const needing = live.filter((session) => questions.get(session.session_id) !== null || isHeld(session));
  const { rows, total, counts } = await find(needing.map(({ session_id }) => session_id));
  const sessions = rows.map((values) => {
    const row = tables.toStored("agent_state", values);
    return summaryFrom(row, questions.get(row.session_id) ?? null);
  });
  return { sessions, total, counts, exact: true };
}
