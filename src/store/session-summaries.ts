import { SESSION_STATUSES, type SessionStatus } from "../domain/session.ts";
import { needsPerson, type SessionSummary, summaryOf } from "../domain/session-summary.ts";
import { folded } from "../domain/words.ts";
import type { Page, SessionSummaries, Store, SummaryFilter } from "./store.ts";

const PAGE = 500;

/** Summaries from any engine: by its own means, or from whole sessions where it has none. */
export async function summarize(store: Store, filter: SummaryFilter): Promise<SessionSummaries> {
  return store.summarizeSessions ? store.summarizeSessions(filter) : summarizeAll(store, filter);
}

export async function summarizeAll(
  store: Pick<Store, "listSessions" | "counts">,
  { limit, offset, statuses, ...filter }: SummaryFilter,
): Promise<SessionSummaries> {
  const isPlain = Object.values(filter).every((value) => value === undefined) && (statuses?.length ?? 1) === 1;
  if (isPlain) return plainPage(store, { limit, offset, status: statuses?.[0] });
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

/** The list that is asked for most often, which is told without a look at every session. */
async function plainPage(
  store: Pick<Store, "listSessions" | "counts">,
  { limit, offset, status }: Page & { status: SessionStatus | undefined },
): Promise<SessionSummaries> {
  const wanted = status === undefined ? {} : { status };
  const [page, { sessions: counts }] = await Promise.all([
    store.listSessions({ limit, offset, ...wanted }),
    store.counts(),
  ]);
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return { sessions: page.map(summaryOf), total: status === undefined ? all : counts[status], counts };
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
