import { z } from "zod";
import { idSchema, timeSchema } from "../../../domain/ids.ts";
import { sessionSchema, sessionStatusSchema } from "../../../domain/session.ts";
import { stepSchema, stepStatusSchema } from "../../../domain/step.ts";
import type { SessionOrAgent } from "../../../store/store.ts";
import type { Routes } from "../context.ts";
import { nextAfter, nextSchema, orderQuery, toOrder } from "../list-order.ts";
import { found, invalid } from "../problem.ts";
import { answers, booleanQuery, idParams, iterationQuery, NEEDS_PERSON, pageQuery } from "../schemas.ts";

const sessionOrAgent = { session_id: idSchema.optional(), agent_id: idSchema.optional() };

export const sessionRoutes: Routes = (app, context) => {
  rowRoutes(app, context);
  stepRoutes(app, context);
};

const rowRoutes: Routes = (app, { store }) => {
  app.get(
    "/api/sessions",
    {
      schema: {
        tags: ["sessions"],
        operationId: "listSessions",
        summary: "List sessions, newest first",
        querystring: z.object({
          status: sessionStatusSchema.optional(),
          agent_id: idSchema.optional(),
          needs_person: booleanQuery.optional().describe(NEEDS_PERSON),
          spawned_by: idSchema.optional().describe("Only those that a step of this session started."),
          ...orderQuery,
          ...pageQuery,
        }),
        response: answers(200, z.object({ sessions: z.array(sessionSchema), next: nextSchema }), 400),
      },
    },
    async ({ query: { sort, after, ...filter } }) => {
      const sessions = await store.listSessions({ ...filter, ...toOrder({ sort, after }) });
      return { sessions, next: nextAfter(sessions, { limit: filter.limit, sort }) };
    },
  );

  app.get(
    "/api/sessions/:session_id",
    {
      schema: {
        tags: ["sessions"],
        operationId: "getSession",
        summary: "Where a session stands",
        params: idParams("session_id"),
        response: answers(200, sessionSchema, 404),
      },
    },
    async (request) => found(await store.getSession(request.params.session_id), "session"),
  );
};

const stepRoutes: Routes = (app, { store }) => {
  app.get(
    "/api/agent-steps",
    {
      schema: {
        tags: ["steps"],
        operationId: "listSteps",
        summary: "List steps of a session or an agent by iteration",
        querystring: z.object({
          ...sessionOrAgent,
          min_iteration: iterationQuery,
          max_iteration: iterationQuery,
          after_iteration: iterationQuery,
          since_created_at: timeSchema.optional(),
          status: stepStatusSchema.optional(),
          with_state: booleanQuery.default(true).describe("Whether the steps come with their states."),
          ...pageQuery,
        }),
        response: answers(200, z.object({ steps: z.array(stepSchema.partial({ state: true })) }), 400),
      },
    },
    async ({ query }) => {
      const { session_id: _, agent_id: __, with_state, ...filter } = query;
      const steps = await store.listSteps({ ...filter, ...one(query) });
      return { steps: with_state ? steps : steps.map(({ state: ___, ...step }) => step) };
    },
  );

  app.get(
    "/api/agent-steps/latest",
    {
      schema: {
        tags: ["steps"],
        operationId: "getLatestStep",
        summary: "The newest step",
        querystring: z.object(sessionOrAgent),
        response: answers(200, stepSchema, 400, 404),
      },
    },
    async ({ query }) => found(await store.latestStep(one(query)), "step"),
  );
};

/** Whose steps are meant: the session's where both are named. */
function one({
  session_id,
  agent_id,
}: {
  session_id?: string | undefined;
  agent_id?: string | undefined;
}): SessionOrAgent {
  if (session_id !== undefined) return { session_id };
  if (agent_id !== undefined) return { agent_id };
  throw invalid([{ path: "session_id", message: "give session_id or agent_id" }]);
}
