import postgres from "postgres";

export const STEPS_PER_SESSION = 100;
/** Steps per statement, so that progress is durable and memory bounded. */
const AT_ONCE = 500_000;

/**
 * Sessions of a hundred steps; those numbered below `ended` ended two months ago, at a whole millisecond, as all times in the store are. A
 * step has two of a thousand sentences as its text, a document and a call. Nine of ten states are deltas.
 */
export async function fillHistory(url: string, sessions: number, ended: number): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await client.unsafe(`create temporary table sentences as select s as number, (
        select string_agg((array['agent','answers','asked','because','before','calls','carefully','document','expected','file','finds',
          'however','looks','model','nothing','number','offers','person','question','reads','result','says','second','steps','table',
          'the','then','tool','waits','which','writes','yesterday'])[1 + abs(hashint4(s * 100 + k)) % 32], ' ')
        from generate_series(1, 20) k) as text from generate_series(0, 999) s`);
    await client.unsafe(`insert into agent_state (session_id, agent_id, moniker, params, options, status, iteration, step_token,
        next_step_token, result, pending_guidance, pending_action_ids, tokens_used, created_action_id, created_at, updated_at,
        ended_at, base_iteration, context)
      select 'session-' || n, 'agent-' || n / 10, 'count', '{"to": 1000000}', '{}', case when n < ${ended} then 'done' else 'running' end,
        ${STEPS_PER_SESSION - 1}, '${STEPS_PER_SESSION - 1}', '${STEPS_PER_SESSION}', '"a result"', '[]', '[]', 0, 'action-' || n,
        now() - interval '70 days', now(), case when n < ${ended} then date_trunc('milliseconds', now()) - interval '60 days' end,
        case when n < ${ended} then null else ${STEPS_PER_SESSION - 10} end, case when n < ${ended} then '{}'::json end
      from generate_series(0, ${sessions - 1}) n`);
    // Recreated below: updating the indexes row by row takes several times as long.
    await client.unsafe("drop index agent_steps_words, agent_steps_by_agent");
    const some = AT_ONCE / STEPS_PER_SESSION;
    for (let first = 0; first < sessions; first += some)
      await client.unsafe(insertSteps(first, Math.min(sessions, first + some) - 1));
    await client.unsafe("create index agent_steps_by_agent on agent_steps (agent_id, iteration, id)");
    await client.unsafe("create index agent_steps_words on agent_steps using gin (words) where words is not null");
    await client.unsafe("vacuum analyze");
  } finally {
    await client.end();
  }
}

const insertSteps = (first: number, last: number): string => `
  insert into agent_steps (session_id, iteration, place, id, created_at, agent_id, step_token, next_step_token, status, text, data,
    state, state_kind, base_iteration, guidance, latency_ms, tokens_used, action_ids, calls, words)
  select 'session-' || n, i, 2147483647, upper(left(md5(n || '-' || i), 26)), now() - interval '65 days' + i * interval '1 minute',
    'agent-' || n / 10, i::text, (i + 1)::text, 'ok', a.text || '. ' || b.text,
    jsonb_build_object('progress', i, 'note', left(b.text, 60)),
    case when i % 10 = 0 then json_build_object('n', i, 'notes', a.text || b.text)
      else json_build_object('n', json_build_array('=', i), 'notes', json_build_array('~', i, 0, left(a.text, 40))) end,
    case when i % 10 = 0 then 'whole' else 'delta' end, i / 10 * 10, '[]', 1000 + abs(hashint4(n * 100 + i)) % 3000,
    500 + abs(hashint4(i * 31 + n)) % 2000, '[]',
    jsonb_build_array(jsonb_build_object('kind', 'model', 'name', 'openai/gpt-5', 'input_tokens', abs(hashint4(n + i)) % 2000, 'output', left(a.text, 80))),
    array_to_tsvector(string_to_array(a.text, ' '))
  from generate_series(${first}, ${last}) n cross join generate_series(0, ${STEPS_PER_SESSION - 1}) i
  join sentences a on a.number = abs(hashint4(n * 7919 + i)) % 1000 join sentences b on b.number = abs(hashint4(n * 131 + i * 17 + 1)) % 1000`;
