import type { ApiClient } from "../client.ts";
import { age, table } from "../output.ts";

type Worker = {
  name: string;
  started_at: string;
  takes_sessions: boolean;
  owned_sessions: number;
  actions_under_way: number;
  silent_ms: number;
  blocked_ms: number;
};
type Health = { workers?: Worker[]; queue_depth: number; queue_lag_ms: number };

export async function workers(client: ApiClient, { json }: { json?: boolean }): Promise<void> {
  const { workers: found, queue_depth, queue_lag_ms } = await client.get<Health>("/health");
  if (json) return console.log(JSON.stringify({ workers: found ?? [], queue_depth, queue_lag_ms }));
  if (!found) return console.log("one process does everything: the embedded store is not shared");
  const rows = found.map((worker) => [
    worker.name,
    worker.takes_sessions ? "worker" : "server",
    String(worker.owned_sessions),
    String(worker.actions_under_way),
    age(worker.started_at),
    worker.blocked_ms > 0 ? `${worker.silent_ms} ms, blocked for ${worker.blocked_ms} ms` : `${worker.silent_ms} ms`,
  ]);
  console.log(table(["NAME", "ROLE", "SESSIONS", "ACTIONS", "AGE", "LAST SEEN"], rows));
  console.log(`${queue_depth} actions wait, the oldest for ${queue_lag_ms} ms`);
}
