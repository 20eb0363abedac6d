import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { PAGE, type SessionSummary, type SummaryQuery, summariesPage } from "../../data/queries.ts";
import { isLive, STATUSES } from "../../data/statuses.ts";
import type { ListOrder } from "./list-order.ts";

const LIVE: readonly string[] = STATUSES.filter(isLive);
const ENDED: readonly string[] = STATUSES.filter((status) => !isLive(status));

/** Consecutive rows from one query; `from` is the index of the first. */
type Part = { query: SummaryQuery; from: number; count: number };

/** Rows of a list of any length. Only the pages in view are read. */
export function useSessionRows(query: SummaryQuery, order: ListOrder, enabled: boolean) {
  const [range, setRange] = useState({ from: 0, to: 0 });
  const isSplit = order === "live" && query.status === undefined;
  const live = { ...query, status: LIVE };
  const head = useQuery({ ...summariesPage(isSplit ? live : query, 0), placeholderData: keepPreviousData, enabled });
  const counts = head.data?.counts;
  const exact = head.data?.exact ?? true;
  const countOf = (statuses: readonly string[]): number =>
    Object.entries(counts ?? {}).reduce((sum, [status, count]) => sum + (statuses.includes(status) ? count : 0), 0);
  const counted = isSplit ? countOf([...LIVE, ...ENDED]) : (head.data?.total ?? 0);
  // Without an exact count it is unknown where the second part starts.
  const liveCount = countOf(LIVE);
  const parts: Part[] =
    isSplit && exact
      ? [
          { query: live, from: 0, count: liveCount },
          { query: { ...query, status: ENDED }, from: liveCount, count: counted - liveCount },
        ]
      : [{ query, from: 0, count: exact ? counted : Number.POSITIVE_INFINITY }];
  const pages = parts.flatMap((part) => pagesIn(part, range).map((page) => ({ part, page })));
  const loaded = useQueries({
    queries: pages.map(({ part, page }) => ({ ...summariesPage(part.query, page), enabled })),
  });
  // Each page says whether there are more.
  const total = exact ? counted : Math.max(counted, ...loaded.map(({ data }) => data?.total ?? 0));
  const rowAt = (index: number): SessionSummary | undefined => {
    const part = parts.findLast(({ from }) => from <= index);
    if (!part) return undefined;
    const at = index - part.from;
    const pageIndex = pages.findIndex((one) => one.part === part && one.page === Math.floor(at / PAGE));
    return loaded[pageIndex]?.data?.sessions[at % PAGE];
  };
  const show = (from: number, to: number) => {
    // Before layout the list reports negative indexes.
    const next = { from: Math.max(0, from), to: Math.max(0, to) };
    if (next.from !== range.from || next.to !== range.to) setRange(next);
  };
  return { total, exact, counts, error: head.error, isLoading: head.isPending, rowAt, show };
}

/** The pages of a part in view; the first page is read before layout. */
function pagesIn({ from, count }: Part, range: { from: number; to: number }): number[] {
  const first = Math.max(0, range.from - from);
  const last = Math.min(count - 1, Math.max(range.to, PAGE - 1) - from);
  if (last < first) return [];
  const pages = { first: Math.floor(first / PAGE), last: Math.floor(last / PAGE) };
  return Array.from({ length: pages.last - pages.first + 1 }, (_, index) => pages.first + index);
}
