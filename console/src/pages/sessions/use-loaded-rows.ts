import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type SessionSummary, type SummaryQuery, summariesPage } from "../../data/queries.ts";
import { isLive } from "../../data/statuses.ts";
import { COMPARE, type ListOrder } from "./list-order.ts";

/** The most that one request returns. */
const MOST_LOADED = 500;

export type AgentGroup = { agent_id: string; sessions: SessionSummary[] };
type Arrangement = { order: ListOrder; isGrouped: boolean };

/**
 * The first sessions of a list, ordered or grouped here: the server lists by time only. Groups with live sessions come first,
 * otherwise in the order of their first session.
 */
export function useLoadedRows(query: SummaryQuery, { order, isGrouped }: Arrangement, enabled: boolean) {
  const { data, error, isPending } = useQuery({
    ...summariesPage(query, 0, MOST_LOADED),
    placeholderData: keepPreviousData,
    enabled,
  });
  const compare = COMPARE[order];
  const loaded = data?.sessions ?? [];
  const sorted = compare ? loaded.toSorted(compare) : loaded;
  const groups = isGrouped ? groupsOf(sorted) : [];
  const rows = isGrouped ? groups.flatMap(({ sessions }) => sessions) : sorted;
  const heads = new Map(groups.map((group) => [group.sessions[0], group]));
  return {
    /** Rows shown; there may be more. */
    total: rows.length,
    matchCount: data?.total ?? 0,
    exact: data?.exact ?? true,
    counts: data?.counts,
    error,
    isLoading: isPending,
    rowAt: (index: number): SessionSummary | undefined => rows[index],
    /** The group that starts with this row. */
    groupAt: (index: number): AgentGroup | undefined => heads.get(rows[index]),
    show: () => {},
  };
}

function groupsOf(rows: readonly SessionSummary[]): AgentGroup[] {
  const byAgent = Map.groupBy(rows, ({ agent_id }) => agent_id);
  const groups = [...byAgent].map(([agent_id, sessions]): AgentGroup => ({ agent_id, sessions }));
  return groups.sort((one, other) => Number(hasLive(other)) - Number(hasLive(one)));
}

const hasLive = ({ sessions }: AgentGroup): boolean => sessions.some(({ status }) => isLive(status));
