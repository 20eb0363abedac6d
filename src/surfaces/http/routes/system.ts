import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { EverstepError } from "../../../domain/errors.ts";
import { idSchema } from "../../../domain/ids.ts";
import { type SearchHit, searchAnswerSchema } from "../../../domain/search.ts";
import type { Routes } from "../context.ts";
import { describeMoniker, monikerSchema } from "../describe-moniker.ts";
import { answers, openAnswers, workersSchema } from "../schemas.ts";

const failedSchema = z
  .array(z.object({ file: z.string(), moniker: z.string().nullable(), error: z.string() }))
  .describe("Files and workers that could not be loaded, why, and which moniker keeps its last good version.");

const reloadSchema = z.object({
  monikers: z
    .array(
      z.object({ name: z.string(), version: z.string(), change: z.enum(["added", "changed", "removed", "unchanged"]) }),
    )
    .describe("All except the built-in ones."),
  failed: failedSchema,
});

const healthSchema = z.object({
  status: z.string(),
  store: z.string(),
  live_sessions: z.int(),
  queue_depth: z.int(),
  queue_lag_ms: z.number(),
  /** Current problems that lose nothing, for example rows that cannot be moved into LanceDB. */
  problems: z.array(z.string()),
  workers: workersSchema,
  error: z.string().optional().describe("Why the store cannot be read or written."),
});

export const systemRoutes: Routes = (app, context) => {
  monikerRoutes(app, context);
  searchRoute(app, context);
  resetRoute(app, context);
  releaseRoute(app, context);
  healthRoute(app, context);
  metricsRoute(app, context);
};

const releaseSchema = z
  .object({
    session_ids: z.array(idSchema).min(1).max(500).optional(),
    agent_id: idSchema.optional(),
    all: z.boolean().optional(),
  })
  .refine((body) => body.session_ids !== undefined || body.agent_id !== undefined || body.all === true, {
    path: ["session_ids"],
    message: "give session_ids, agent_id or all",
  });

const releaseRoute: Routes = (app, { release }) => {
  app.post(
    "/api/system/release",
    {
      schema: {
        tags: ["system"],
        operationId: "releaseSessions",
        summary: "Release sessions that are held since the start (EVERSTEP_START_HELD=1)",
        body: releaseSchema,
        response: answers(
          200,
          z.object({ released: z.int().min(0).describe("Sessions that continue in the responding process.") }),
          400,
        ),
      },
    },
    async ({ body: { session_ids, agent_id, all } }) => ({
      released: await release({
        ...(session_ids && { session_ids }),
        ...(agent_id !== undefined && { agent_id }),
        ...(all && { all }),
      }),
    }),
  );
};

const monikerRoutes: Routes = (app, { catalog, reloadMonikers }) => {
  app.get(
    "/api/monikers",
    {
      schema: {
        tags: ["system"],
        operationId: "listMonikers",
        summary: "The available monikers",
        response: answers(200, z.object({ monikers: z.array(monikerSchema), failed: failedSchema.optional() })),
      },
    },
    () => ({
      monikers: [...catalog.values()].map(describeMoniker),
      ...(catalog.failed?.length && { failed: [...catalog.failed] }),
    }),
  );

  app.post(
    "/api/monikers/reload",
    {
      schema: {
        tags: ["system"],
        operationId: "reloadMonikers",
        summary: "Reload monikers whose code or prompts changed; a running step finishes on the old code",
        response: answers(200, reloadSchema),
      },
    },
    async () => reloadMonikers(),
  );
};

const searchRoute: Routes = (app, { store }) => {
  app.get(
    "/api/search",
    {
      schema: {
        tags: ["system"],
        operationId: "search",
        summary: "Search steps and messages, ignoring case and diacritics",
        querystring: z.object({
          q: z.string().min(1).max(1000),
          agent_id: idSchema.optional(),
          session_id: idSchema.optional(),
          limit: z.coerce.number().int().min(1).max(500).default(100),
        }),
        response: answers(200, searchAnswerSchema, 400),
      },
    },
    async ({ query }) => ({
      hits: (await store.search(query)).sort(inStableOrder),
      archives_skipped: await store.volumes.countArchived(query),
    }),
  );
};

/** A stable order for hits with equal scores: newest id first. */
function inStableOrder(one: SearchHit, other: SearchHit): number {
  const place = ({ message_id, session_id, iteration }: SearchHit): [string, number] => [
    message_id ?? session_id ?? "",
    iteration ?? 0,
  ];
  const [[oneId, oneStep], [otherId, otherStep]] = [place(one), place(other)];
  if (one.score !== other.score) return other.score - one.score;
  if (oneId !== otherId) return oneId < otherId ? 1 : -1;
  return otherStep - oneStep;
}

/** The body is ignored, so any type or none is accepted. */
const resetRoute: Routes = (app, { chat }) => {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, _body, done) => done(null, undefined));
    scope.withTypeProvider<ZodTypeProvider>().post(
      "/reset",
      {
        schema: {
          tags: ["system"],
          operationId: "resetChat",
          summary: "Reset the chat of /agent_ws/",
          response: answers(200, z.object({ status: z.literal("reset") })),
        },
      },
      async () => {
        await chat.reset();
        return { status: "reset" as const };
      },
    );
  });
};

const healthRoute: Routes = (app, { store, isTrusted }) => {
  app.get(
    "/health",
    {
      config: { open: true },
      schema: {
        tags: ["system"],
        operationId: "getHealth",
        summary: "Whether the server works",
        security: [],
        response: {
          ...openAnswers(200, healthSchema, 403),
          503: healthSchema.partial().describe("The store cannot be reached or written."),
        },
      },
    },
    async (request, reply) => {
      try {
        await store.checkWritable?.();
        const { sessions, queue_depth, oldest_pending_at } = await store.counts();
        const live_sessions = sessions.running + sessions.waiting + sessions.paused + sessions.stopping;
        const queue_lag_ms = oldest_pending_at === null ? 0 : Math.max(0, Date.now() - Date.parse(oldest_pending_at));
        const workers = await store.listWorkers?.();
        // Names contain host names, so they are only for trusted clients.
        const shown = isTrusted(request) ? workers : workers?.map((worker) => ({ ...worker, name: undefined }));
        // A problem may name a folder.
        const problems = ((await store.problems?.()) ?? []).map((problem) =>
          isTrusted(request) ? problem : "see the log",
        );
        return {
          status: "ok",
          store: store.kind,
          live_sessions,
          queue_depth,
          queue_lag_ms,
          problems,
          ...(shown && { workers: shown }),
        };
      } catch (error) {
        const reason = isTrusted(request) && error instanceof EverstepError ? error.message : undefined;
        return reply.code(503).send({ status: "unavailable", store: store.kind, ...(reason && { error: reason }) });
      }
    },
  );
};

const metricsRoute: Routes = (app, { metrics }) => {
  app.get(
    "/metrics",
    {
      config: { metrics: true },
      schema: {
        tags: ["system"],
        operationId: "getMetrics",
        summary: "Metrics for Prometheus",
        security: [{ metrics_token: [] }],
        produces: ["text/plain"],
        response: answers(200, z.string()),
      },
    },
    async (_request, reply) => reply.type(metrics.contentType).send(await metrics.render()),
  );
};
