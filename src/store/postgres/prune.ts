import type { Pruned } from "../store.ts";
import type { Pool } from "./connections.ts";

/** Rows that one statement deletes at most, so that none holds its locks for long. */
const AT_ONCE = 500;

export async function prune(pool: Pool, before: string): Promise<Pruned> {
  return { sessions: await repeat(pool, SESSIONS, before), conversations: await repeat(pool, CONVERSATIONS, before) };
}

async function repeat(pool: Pool, statement: string, before: string): Promise<number> {
  for (let total = 0; ; ) {
    const [row] = await pool.query(statement, before, AT_ONCE);
    const deleted = Number(row?.["count"] ?? 0);
    total += deleted;
    if (deleted === 0) return total;
  }
}

/** Forks go before what they were taken from. Actions that were never claimed keep their session. */
const SESSIONS = `
with old as materialized (
  select s.session_id from agent_state s
  where s.status in ('done', 'stopped') and s.ended_at < $1::timestamptz and s.node_no is null
    and not exists (select 1 from agent_state c where c.parent_session_id = s.session_id)
    and not exists (select 1 from queue q where q.session_id = s.session_id and not q.processed)
  order by s.session_id limit $2 for update skip locked),
steps as (delete from agent_steps t using old o where t.session_id = o.session_id),
actions as (delete from queue q using old o where q.session_id = o.session_id),
cursors as (delete from session_cursors c using old o where c.session_id = o.session_id),
sessions as (delete from agent_state s using old o where s.session_id = o.session_id returning 1)
select count(*)::integer as count from sessions`;

const CONVERSATIONS = `
with old as materialized (
  select c.conversation_id from conversations c
  where c.status = 'archived' and c.created_at < $1::timestamptz
    and not exists (select 1 from conversation_messages m where m.conversation_id = c.conversation_id and m.created_at >= $1::timestamptz)
    and not exists (select 1 from agent_state s where s.conversation_id = c.conversation_id)
  order by c.conversation_id limit $2 for update skip locked),
messages as (delete from conversation_messages m using old o where m.conversation_id = o.conversation_id),
numbers as (delete from conversation_numbers n using old o where n.conversation_id = o.conversation_id),
participants as (delete from conversation_participants p using old o where p.conversation_id = o.conversation_id),
conversations as (delete from conversations c using old o where c.conversation_id = o.conversation_id returning 1)
select count(*)::integer as count from conversations`;
