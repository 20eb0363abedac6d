import { z } from "zod";
import { timeSchema } from "../../../domain/ids.ts";
import type { ApiClient } from "../client.ts";
import { age, table } from "../output.ts";

const workerSchema = z.object({
  /** If the server has a token, only for requests with it. */
  name: z.string().optional(),
  started_at: timeSchema,
  takes_sessions: z.boolean(),
  owned_sessions: z.int(),
  actions_under_way: z.int(),
  silent_ms: z.number(),
  blocked_ms: z.number(),
});
const healthSchema = z.object({
  workers: z.array(workerSchema).optional(),
  queue_depth: z.int(),
  queue_lag_ms: z.number(),
});

export async function workers(client: ApiClient, { json }: { json?: boolean }): Promise<void> {
  const { workers: processes, queue_depth, queue_lag_ms } = await client.get(healthSchema, "/health");
  if (json) return console.log(JSON.stringify({ workers: processes ?? [], queue_depth, queue_lag_ms }));
  if (!processes) return console.log("the embedded store has a single process");
  const rows = processes.map((worker) => [
    worker.name ?? "(needs the token)",
    worker.takes_sessions ? "worker" : "server",
    String(worker.owned_sessions),
    String(worker.actions_under_way),
    age(worker.started_at),
    worker.blocked_ms > 0 ? `${worker.silent_ms} ms, blocked for ${worker.blocked_ms} ms` : `${worker.silent_ms} ms`,
  ]);
  console.log(table(["NAME", "ROLE", "SESSIONS", "ACTIONS", "AGE", "LAST SEEN"], rows));
  console.log(`${queue_depth} actions queued, the oldest for ${queue_lag_ms} ms`);
}
