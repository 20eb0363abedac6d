import type { SessionSummary } from "../../../src/domain/session-summary.ts";
import { follow } from "./live.ts";
import { client, type Summaries } from "./queries.ts";

const REFRESH_MS = 700;
let refresh: ReturnType<typeof setTimeout> | undefined;

/** Counts and the place of rows may have changed: lists are read again, at most every so often. */
function refreshSoon(): void {
  refresh ??= setTimeout(() => {
    refresh = undefined;
    void client.invalidateQueries({ queryKey: ["summaries"] });
  }, REFRESH_MS);
}

/** Rows that are shown change at once. */
function patch(changed: Map<string, SessionSummary>): void {
  const seen = new Set<string>();
  let hasMoved = false;
  client.setQueriesData<Summaries>({ queryKey: ["summaries"] }, (known) => {
    if (!known) return known;
    const sessions = known.sessions.map((row) => {
      const next = changed.get(row.session_id);
      if (!next) return row;
      seen.add(row.session_id);
      hasMoved ||= next.status !== row.status || next.question?.question_id !== row.question?.question_id;
      return next;
    });
    return { ...known, sessions };
  });
  const newest = Math.max(...[...changed.values()].map(({ created_at }) => Date.parse(created_at)));
  const mayBeNew = [...changed.keys()].some((id) => !seen.has(id)) && Date.now() - newest < 60_000;
  if (hasMoved || mayBeNew || [...changed.values()].some((row) => row.status !== "running")) refreshSoon();
}

/** Keeps every list of sessions live while the console is open. */
export const followSummaries = (): (() => void) =>
  follow(() => ({ summaries: true }), {
    session_summaries: ({ sessions }) => patch(new Map(sessions.map((row) => [row.session_id, row]))),
  });
