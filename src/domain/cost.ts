/** What the sessions of an agent that began on one day used of one model. */
export type SessionCosts = {
  /** UTC, `2026-01-31`. */
  day: string;
  agent_id: string;
  /** That of the sessions' options; null: the server's own. */
  model: string | null;
  sessions: number;
  tokens_used: number;
  cost_usd: number;
};
