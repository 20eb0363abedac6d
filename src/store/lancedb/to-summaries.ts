import { isHeld, isLive, type Session } from "../../domain/session.ts";
import { summaryOf } from "../../domain/session-summary.ts";
import type { SessionSummaries } from "../store.ts";
import type { FoundSummaries } from "./summary-rows.ts";
import type { EmbeddedTables } from "./tables.ts";

/** Live sessions that ask something or are held: memory knows them. */
export const needingSessions = (live: Session[]): string[] =>
  live
    .filter((session) => (session.question !== null && isLive(session.status)) || isHeld(session))
    .map(({ session_id }) => session_id);

/** Summaries from the journal's rows. */
export async function toSummaries(
  tables: EmbeddedTables,
  live: Session[],
  find: (needing: string[]) => Promise<FoundSummaries>,
): Promise<SessionSummaries> {
  const { rows, total, counts } = await find(needingSessions(live));
  const sessions = rows.map((values) => summaryOf(tables.toStored("agent_state", values)));
  return { sessions, total, counts, exact: true };
}
