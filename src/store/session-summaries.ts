import { SESSION_STATUSES } from "../domain/session.ts";
import { needsPerson, type SessionSummary, summaryOf } from "../domain/session-summary.ts";
import { folded } from "../domain/words.ts";
import type { SessionSummaries, Store, SummaryFilter } from "./store.ts";

const PAGE = 500;

/** Summaries from any engine: by its own means, or from whole sessions where it has none. */
export async function summarize(store: Store, filter: SummaryFilter): Promise<SessionSummaries> {
  return store.summarizeSessions ? store.summarizeSessions(filter) : summarizeAll(store, filter);
}

export async function summarizeAll(
  store: Pick<Store, "listSessions">,
  { limit, offset, statuses, ...filter }: SummaryFilter,
): Promise<SessionSummaries> {
  const counts = Object.fromEntries(SESSION_STATUSES.map((status) => [status, 0])) as SessionSummaries["counts"];
  const wanted: SessionSummary[] = [];
  const agent = filter.agent_id === undefined ? {} : { agent_id: filter.agent_id };
  for (let from = 0; ; from += PAGE) {
    const page = await store.listSessions({ limit: PAGE, offset: from, ...agent });
    for (const summary of page.map(summaryOf).filter((one) => fits(one, filter))) {
      counts[summary.status] += 1;
      if (statuses?.includes(summary.status) ?? true) wanted.push(summary);
    }
    if (page.length < PAGE) break;
  }
  return { sessions: wanted.slice(offset, offset + limit), total: wanted.length, counts };
}

function fits(summary: SessionSummary, { moniker, q, session_ids, needs_person }: Partial<SummaryFilter>): boolean {
  const { session_id, agent_id, text } = summary;
  const searched = [session_id, agent_id, summary.moniker, text ?? ""].join(" ");
  return (
    summary.moniker === (moniker ?? summary.moniker) &&
    (q === undefined || folded(searched).includes(folded(q))) &&
    (session_ids?.includes(session_id) ?? true) &&
    (!needs_person || needsPerson(summary))
  );
}
