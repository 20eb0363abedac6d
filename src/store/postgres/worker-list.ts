import type { WorkerInfo } from "../store.ts";
import type { Pool } from "./connections.ts";

/** The processes that share the database, oldest first. */
export async function listWorkers(pool: Pool): Promise<WorkerInfo[]> {
  const rows = await pool.query(
    `select w.name, w.started_at, w.takes_sessions,
       (select count(*)::integer from agent_state s where s.node_no = w.node_no) as owned_sessions,
       (select count(*)::integer from queue q where q.claimed_by = w.node_no) as actions_under_way,
       w.blocked_ms, greatest(0, extract(epoch from now() - w.renewed_at) * 1000)::integer as silent_ms
     from workers w where w.expires_at > now() order by w.node_no`,
  );
  return rows as unknown as WorkerInfo[];
}
