import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { PAGE, type SessionSummary, type SummaryQuery, summariesPage } from "../../data/queries.ts";

/** Rows of a list of any length: only the pages in view are read. */
export function useSessionRows(query: SummaryQuery) {
  const [range, setRange] = useState({ from: 0, to: 0 });
  const first = useQuery({ ...summariesPage(query, 0), placeholderData: keepPreviousData });
  const exact = first.data?.exact ?? true;
  const counted = first.data?.total ?? 0;
  const last = exact ? Math.min(range.to, Math.max(0, Math.ceil(counted / PAGE) - 1)) : range.to;
  const pages = Array.from({ length: Math.max(0, last - range.from + 1) }, (_, index) => range.from + index);
  const loaded = useQueries({
    queries: pages.map((page) => ({ ...summariesPage(query, page), placeholderData: keepPreviousData })),
  });
  // A list that was not counted tells with each page whether there is another.
  const total = exact ? counted : Math.max(counted, ...loaded.map(({ data }) => data?.total ?? 0));
  const byPage = new Map(pages.map((page, index) => [page, loaded[index]?.data?.sessions]));
  if (first.data) byPage.set(0, first.data.sessions);

  const rowAt = (index: number): SessionSummary | undefined => byPage.get(Math.floor(index / PAGE))?.[index % PAGE];
  const show = (from: number, to: number) => {
    // A list that has not been laid out yet has no first row.
    const next = { from: Math.floor(Math.max(0, from) / PAGE), to: Math.floor(Math.max(0, to) / PAGE) };
    if (next.from !== range.from || next.to !== range.to) setRange(next);
  };
  return { total, exact, counts: first.data?.counts, error: first.error, isLoading: first.isPending, rowAt, show };
}
