import postgres from "postgres";

/** Where a session's guidance is, and what is missing. */
export type Whereabouts = {
  /** Not processed, or not used yet. */
  open: number;
  /** One line for each piece that is not where its receipt says. */
  wrong: string[];
};

/**
 * Every action that brought guidance and where it is, in one snapshot: in the queue, or pending in its session and nowhere
 * else, or in exactly the step that its receipt names, or returned. It can therefore be checked while everything runs.
 */
const WHEREABOUTS = `
with used as materialized (
  select u.action_id, json_agg(s.iteration) as iterations
  from agent_steps s, jsonb_array_elements_text(s.action_ids) as u (action_id)
  where s.status = 'ok' and s.action_ids <> '[]' group by u.action_id),
waiting as materialized (
  select w.action_id, a.session_id, count(*)::int as times
  from agent_state a, jsonb_array_elements_text(a.pending_action_ids) as w (action_id) group by w.action_id, a.session_id)
select q.action_id, q.session_id, q.processed, q.outcome, q.receipt, q.consumed_iteration,
  coalesce(w.times, 0) as pending, coalesce(u.iterations, '[]') as used_at
from queue q left join waiting w using (action_id, session_id) left join used u using (action_id)
where q.action_type in ('agent_interrupt', 'agent_input')`;

type Row = {
  action_id: string;
  session_id: string;
  processed: boolean;
  outcome: string | null;
  receipt: string;
  consumed_iteration: number | null;
  pending: number;
  used_at: number[];
};

/** Reads the tables directly: the port would return thousands of steps with their full states. */
export async function guidanceWhereabouts(url: string, acknowledged: ReadonlySet<string>): Promise<Whereabouts> {
  // Actions acknowledged from now on may be missing in the snapshot.
  const expected = [...acknowledged];
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const rows = (await client.unsafe(WHEREABOUTS)) as unknown as Row[];
    const storedIds = new Set(rows.map(({ action_id }) => action_id));
    const missing = expected.filter((id) => !storedIds.has(id)).map((id) => `${id} was acknowledged and is gone`);
    return {
      open: rows.filter(({ processed, pending }) => !processed || pending > 0).length,
      wrong: [...missing, ...rows.flatMap(complaint)],
    };
  } finally {
    await client.end();
  }
}

function complaint(row: Row): string[] {
  const { processed, outcome, receipt, consumed_iteration, pending, used_at } = row;
  const isRight = !processed
    ? pending === 0 && used_at.length === 0
    : receipt === "delivered"
      ? outcome === "ok" && pending === 1 && used_at.length === 0
      : receipt === "consumed"
        ? pending === 0 && used_at.length === 1 && used_at[0] === consumed_iteration
        : receipt === "bounced" && pending === 0 && used_at.length === 0;
  return isRight ? [] : [JSON.stringify(row)];
}
