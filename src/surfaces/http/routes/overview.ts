import { z } from "zod";
import { sessionCountsSchema } from "../../../domain/session.ts";
import type { Routes } from "../context.ts";
import { answers, workersSchema } from "../schemas.ts";

const count = z.int().min(0);
const runtimeSchema = z.object({
  worker_id: z.string(),
  pid: z.int(),
  started_at: z.string(),
  running_steps: count.describe("Running steps."),
  waiting_steps: count.describe("Steps that wait for a slot."),
  max_running_steps: count,
  holds_sessions: z.boolean().describe("Whether sessions are held since the start until they are released."),
});

const overviewSchema = z.object({
  store: z.string(),
  sessions: sessionCountsSchema,
  queue_depth: count,
  queue_lag_ms: z.number().min(0),
  runtimes: z.array(runtimeSchema).describe("The runtimes of this process; none if it only serves."),
  workers: workersSchema,
  process: z.object({ node: z.string(), uptime_s: z.number(), memory_bytes: count }),
  samples: z
    .array(z.object({ at: z.string(), steps: count, errors: count, tokens: count, latency_ms: z.number() }))
    .describe("Throughput of the last half hour in buckets of five seconds, as far back as known."),
});

export const overviewRoutes: Routes = (app, { store, metrics, runtimes }) => {
  app.get(
    "/api/system",
    {
      schema: {
        tags: ["system"],
        operationId: "getSystem",
        summary: "The queue, the workers, the store and the throughput of the last half hour",
        response: answers(200, overviewSchema),
      },
    },
    async () => {
      await metrics.throughput.restore(store);
      const { sessions, queue_depth, oldest_pending_at } = await store.counts();
      return {
        store: store.kind,
        sessions,
        queue_depth,
        queue_lag_ms: oldest_pending_at === null ? 0 : Math.max(0, Date.now() - Date.parse(oldest_pending_at)),
        runtimes: runtimes(),
        workers: await store.listWorkers?.(),
        process: {
          node: process.version,
          uptime_s: Math.round(process.uptime()),
          memory_bytes: process.memoryUsage.rss(),
        },
        samples: metrics.throughput.samples(),
      };
    },
  );
};
