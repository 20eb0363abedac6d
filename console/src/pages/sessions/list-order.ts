import type { SessionSummary, SummaryQuery } from "../../data/queries.ts";

type Compare = (one: SessionSummary, other: SessionSummary) => number;

/** The orders of the list with their labels. `live`, `updated` and `created` are the server's; the others need all rows. */
export const ORDERS = {
  live: "live first",
  updated: "recently updated first",
  created: "newest first",
  agent: "by agent, A to Z",
  moniker: "by moniker, A to Z",
  steps: "most steps first",
  tokens: "most tokens first",
  cost: "most expensive first",
} as const;
export type ListOrder = keyof typeof ORDERS;

export const toListOrder = (value: string | null): ListOrder =>
  value !== null && Object.hasOwn(ORDERS, value) ? (value as ListOrder) : "live";

/** Orders that are made here, from rows that are loaded. */
export const COMPARE: Readonly<Partial<Record<ListOrder, Compare>>> = {
  agent: (one, other) => one.agent_id.localeCompare(other.agent_id),
  moniker: (one, other) => one.moniker.localeCompare(other.moniker),
  steps: (one, other) => other.iteration - one.iteration,
  tokens: (one, other) => other.tokens_used - one.tokens_used,
  cost: (one, other) => other.cost_usd - one.cost_usd,
};

export const sortOf = (order: ListOrder): NonNullable<SummaryQuery["sort"]> =>
  order === "updated" ? "updated_at" : "created_at";

/** Time ranges by their name in the address. */
export const RANGES: ReadonlyMap<string, { label: string; ms: number }> = new Map([
  ["1h", { label: "Last hour", ms: 3_600_000 }],
  ["24h", { label: "Last 24 hours", ms: 86_400_000 }],
  ["7d", { label: "Last 7 days", ms: 7 * 86_400_000 }],
  ["30d", { label: "Last 30 days", ms: 30 * 86_400_000 }],
]);
