import type { SessionSummary } from "../../../src/domain/session-summary.ts";
import { follow } from "./live.ts";
import { client, type Summaries, type SummaryQuery } from "./queries.ts";

const REFRESH_MS = 700;
let refresh: ReturnType<typeof setTimeout> | undefined;

/** Counts and positions may have changed: lists are read again, throttled. */
function refreshSoon(): void {
  refresh ??= setTimeout(() => {
    refresh = undefined;
    void client.invalidateQueries({ queryKey: ["summaries"] });
  }, REFRESH_MS);
}

/** Updates the rows on screen at once. */
function patch(changed: Map<string, SessionSummary>): void {
  const seen = new Set<string>();
  let hasMoved = false;
  client.setQueriesData<Summaries>({ queryKey: ["summaries"] }, (cached) => {
    if (!cached) return cached;
    const sessions = cached.sessions.map((row) => {
      const next = changed.get(row.session_id);
      if (!next) return row;
      seen.add(row.session_id);
      hasMoved ||= next.status !== row.status || next.question?.question_id !== row.question?.question_id;
      return next;
    });
    return { ...cached, sessions };
  });
  // In a list ordered by update, every change moves a row.
  hasMoved ||= client
    .getQueryCache()
    .findAll({ queryKey: ["summaries"], type: "active" })
    .some(({ queryKey: [, query] }) => (query as SummaryQuery).sort === "updated_at");
  const newest = Math.max(...[...changed.values()].map(({ created_at }) => Date.parse(created_at)));
  const mayBeNew = [...changed.keys()].some((id) => !seen.has(id)) && Date.now() - newest < 60_000;
  if (hasMoved || mayBeNew || [...changed.values()].some((row) => row.status !== "running")) refreshSoon();
}

/** Keeps every list of sessions live while the console is open. */
export const followSummaries = (): (() => void) =>
  follow(() => ({ summaries: true }), {
    session_summaries: ({ sessions }) => patch(new Map(sessions.map((row) => [row.session_id, row]))),
  });
