import postgres from "postgres";

/** Sessions with `steps` steps each, ten per agent, as in a cluster that has run for a while. */
export async function fill(url: string, sessions: number, steps: number): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await client.unsafe(`insert into agent_state (session_id, agent_id, moniker, params, options, status, iteration, step_token,
        next_step_token, result, pending_guidance, pending_action_ids, tokens_used, created_action_id, created_at, updated_at, base_iteration)
      select 'session-' || n, 'agent-' || n / 10, 'count', '{"to": 1000000}', '{}', 'running', ${steps - 1}, '${steps - 1}', '${steps}',
        '"a result"', '[]', '[]', 0, 'action-' || n, now() - (${sessions} - n) * interval '1 second', now(), ${steps - 1}
      from generate_series(0, ${sessions - 1}) n`);
    await client.unsafe(`insert into agent_steps (session_id, iteration, place, id, created_at, agent_id, step_token, next_step_token,
        status, text, state, state_kind, base_iteration, guidance, latency_ms, tokens_used, action_ids, words)
      select 'session-' || n, i, 2147483647, n || '-' || i, now(), 'agent-' || n / 10, i::text, (i + 1)::text,
        'ok', 'step ' || i || ' of ' || n, json_build_object('n', i), 'whole', i, '[]', 1, 0, '[]',
        format('''step'':1 ''%s'':2', i)::tsvector
      from generate_series(0, ${sessions - 1}) n, generate_series(0, ${steps - 1}) i`);
    await client.unsafe(`insert into queue (action_id, created_at, action_type, agent_id, session_id, payload, metadata, urgency,
        processed, processed_at, outcome, attempts, receipt)
      select 'action-' || n, now() - (${sessions} - n) * interval '1 second', 'agent_create', 'agent-' || n / 10, 'session-' || n, '{}', '{}', 0,
        true, now(), 'ok', 1, 'delivered'
      from generate_series(0, ${sessions - 1}) n`);
    await client.unsafe("vacuum analyze");
  } finally {
    await client.end();
  }
}
