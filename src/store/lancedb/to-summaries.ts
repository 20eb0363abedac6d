import type { Session } from "../../domain/session.ts";
import { questionOf, summaryFrom } from "../../domain/session-summary.ts";
import type { SessionSummaries } from "../store.ts";
import type { FoundSummaries } from "./summary-rows.ts";
import { toRow } from "./tables.ts";

/** Summaries from the journal's rows; what live sessions ask is in their states, which only memory has at hand. */
export async function toSummaries(
  live: Session[],
  find: (asking: string[]) => Promise<FoundSummaries>,
): Promise<SessionSummaries> {
  const questions = new Map(live.map((session) => [session.session_id, questionOf(session)]));
  const asking = [...questions].flatMap(([id, question]) => (question === null ? [] : [id]));
  const { rows, total, counts } = await find(asking);
  const sessions = rows.map((values) => {
    const row = toRow("agent_state", values);
    return summaryFrom(row, questions.get(row.session_id) ?? null);
  });
  return { sessions, total, counts };
}
