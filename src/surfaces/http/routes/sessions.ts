import { z } from "zod";
import { idSchema, timeSchema } from "../../../domain/ids.ts";
import { sessionSchema, sessionStatusSchema } from "../../../domain/session.ts";
import { stepSchema, stepStatusSchema } from "../../../domain/step.ts";
import { spanOf, stepSpanSchema } from "../../../domain/step-span.ts";
import { type ArchivedHistory, type ArchivedRange, archivedHistorySchema } from "../../../domain/volume.ts";
import type { SessionOrAgent } from "../../../store/store.ts";
import type { Routes } from "../context.ts";
import { nextAfter, nextSchema, orderQuery, toOrder } from "../list-order.ts";
import { invalid, orNotFound } from "../problem.ts";
import { answers, booleanQuery, idParams, iterationQuery, NEEDS_PERSON, pageQuery } from "../schemas.ts";

const sessionOrAgent = { session_id: idSchema.optional(), agent_id: idSchema.optional() };

/** Only where some of its history left the store's tables. */
const sessionWithArchiveSchema = sessionSchema.extend({ archived: archivedHistorySchema.optional() });

function archivedHistory(ranges: readonly ArchivedRange[]): ArchivedHistory | null {
  const rows = (rangeState: ArchivedRange["state"]): number =>
    ranges.reduce((sum, { state, rows: count }) => sum + (state === rangeState ? count : 0), 0);
  const archived = { steps: rows("archived"), dropped_steps: rows("dropped") };
  return archived.steps + archived.dropped_steps > 0 ? archived : null;
}

/** The most spans per request: they are small. */
const MOST_SPANS = 1000;

export const sessionRoutes: Routes = (app, context) => {
  rowRoutes(app, context);
  stepRoutes(app, context);
  spanRoutes(app, context);
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
          spawned_by: idSchema.optional().describe("Only sessions that a step of this session started."),
          parent_session_id: idSchema.optional().describe("Only forks of this session."),
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
        summary: "One session",
        params: idParams("session_id"),
        response: answers(200, sessionWithArchiveSchema, 404),
      },
    },
    async ({ params: { session_id } }) => {
      const session = orNotFound(await store.getSession(session_id), "session");
      const archived = archivedHistory(await store.volumes.ranges({ owner_ids: [session_id] }));
      return archived ? { ...session, archived } : session;
    },
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
          with_state: booleanQuery.default(true).describe("Include the steps' states."),
          with_calls: booleanQuery.default(true).describe("Include the steps' calls to models and tools."),
          ...pageQuery,
        }),
        response: answers(200, z.object({ steps: z.array(stepSchema.partial({ state: true, calls: true })) }), 400),
      },
    },
    async ({ query }) => {
      const { session_id: _, agent_id: __, with_state, with_calls, ...filter } = query;
      const steps = await store.listSteps({ ...filter, ...one(query) });
      if (with_state && with_calls) return { steps };
      return {
        steps: steps.map(({ state, calls, ...step }) => ({
          ...step,
          ...(with_state && { state }),
          ...(with_calls && { calls }),
        })),
      };
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
    async ({ query }) => orNotFound(await store.latestStep(one(query)), "step"),
  );
};

const spanRoutes: Routes = (app, { store }) => {
  app.get(
    "/api/step-spans",
    {
      schema: {
        tags: ["steps"],
        operationId: "listStepSpans",
        summary: "When a session's steps ran and what they called, without their texts",
        querystring: z.object({
          session_id: idSchema,
          min_iteration: iterationQuery,
          max_iteration: iterationQuery,
          ...pageQuery,
          limit: pageQuery.limit.unwrap().max(MOST_SPANS).default(MOST_SPANS),
        }),
        response: answers(200, z.object({ spans: z.array(stepSpanSchema) }), 400),
      },
    },
    async ({ query }) => ({ spans: (await store.listSteps(query)).map(spanOf) }),
  );
};

/** Whose steps are meant: the session's if both are given. */
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
