/** Usage of one model by an agent's sessions that were created on one day. */
export type SessionCosts = {
  /** UTC, `2026-01-31`. */
  day: string;
  agent_id: string;
  /** From the sessions' options; null: the server's default model. */
  model: string | null;
  sessions: number;
  tokens_used: number;
  cost_usd: number;
};
