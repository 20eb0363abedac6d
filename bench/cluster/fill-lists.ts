import postgres from "postgres";
import { Pool } from "../../src/store/postgres/connections.ts";
import { ListUpkeep, UPKEEP_TUNING } from "../../src/store/postgres/session-lists.ts";
import { LARGE_AGENTS, MONIKERS } from "../lists.ts";

/** `sessionId(n)` in SQL. */
const SESSION_ID = "upper(substr(translate(encode(sha256(('session ' || n)::bytea), 'base64'), '+/', 'XY'), 1, 26))";
/**
 * Sessions without steps, evenly spread over the statuses, so that each list has a full page with 1,000 of them: more than half
 * need a person. Half belong to a few large agents; each of the others has its own agent and its own conversation.
 */
export async function fillLists(url: string, sessions: number): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    // Recreated below: updating the index row by row takes ten times as long.
    await client.unsafe("drop index session_search_grams");
    await client.unsafe(`insert into agent_state (session_id, agent_id, moniker, params, options, status, stop_reason, pause_reason,
        question, iteration, next_step_token, result, pending_guidance, pending_action_ids, tokens_used, created_action_id,
        created_at, updated_at, context)
      select ${SESSION_ID}, case when n % 2 = 0 then 'agent-' || n / 2 % ${LARGE_AGENTS} else 'lone agent ' || n end,
        'moniker-' || n / 2 % ${MONIKERS}, '{"to": 1000000}', '{}', t.status, case when t.status = 'stopped' then 'max_steps' end,
        case when t.status = 'paused' then '{"kind": "breakpoint", "step_token": "3"}'::jsonb end,
        case when t.status in ('running', 'waiting') and n % 2 = 0 then 'May I go on?' end, -1, '0',
        to_jsonb('This is what session ' || n || ' said last. ' || case when n % 10 = 0 then 'Every tenth says so. ' else '' end
          || case when n % 100 = 0 then 'The hundredth, too. ' else '' end || md5(n::text)),
        '[]', '[]', 0, 'action-' || n, now() - (${sessions} - n) * interval '1 second', now() - (${sessions} - n) * interval '1 second', '{}'
      from generate_series(0, ${sessions - 1}) n,
        lateral (select (array['running', 'waiting', 'paused', 'stopping', 'stopped', 'done', 'error'])[n % 7 + 1] as status) t`);
    await client.unsafe(`insert into conversations (conversation_id, title, status, tags, created_at)
      select 'conversation-' || n, 'About session ' || n, 'open', '["bench"]', now() - (${sessions} - n) * interval '1 second'
      from generate_series(0, ${sessions - 1}) n`);
    const pool = new Pool(url, 1);
    await new ListUpkeep(pool, UPKEEP_TUNING).run();
    await pool.close();

    await client.unsafe("create index session_search_grams on session_search using gin (grams)");
    await client.unsafe("vacuum analyze");
  } finally {
    await client.end();
  }
}
