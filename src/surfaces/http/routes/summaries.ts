import { z } from "zod";
import { idSchema } from "../../../domain/ids.ts";
import { SESSION_STATUSES, sessionStatusSchema } from "../../../domain/session.ts";
import { sessionSummarySchema } from "../../../domain/session-summary.ts";
import type { Routes } from "../context.ts";
import { nextAfter, nextSchema, orderQuery, toOrder } from "../list-order.ts";
import { answers, booleanQuery, NEEDS_PERSON, pageQuery } from "../schemas.ts";

const oneOrMore = <Item extends z.ZodType>(item: Item) => z.union([item, z.array(item).max(500)]).optional();

const summariesQuery = z.object({
  status: oneOrMore(sessionStatusSchema).describe("May be repeated."),
  session_id: oneOrMore(idSchema).describe("May be repeated."),
  agent_id: idSchema.optional(),
  moniker: z.string().min(1).max(200).optional(),
  q: z.string().max(1000).optional().describe("Part of an id, the moniker or the last text."),
  needs_person: booleanQuery.optional().describe(NEEDS_PERSON),
  spawned_by: idSchema.optional().describe("Only those that a step of this session started."),
  ...orderQuery,
  ...pageQuery,
});

const count = z.int().min(0);
const summariesSchema = z.object({
  sessions: z.array(sessionSummarySchema),
  total: count.describe("How many there are in all."),
  counts: z
    .object(Object.fromEntries(SESSION_STATUSES.map((status) => [status, count])))
    .describe("How many there are of each status, whatever `status` was asked for."),
  exact: z
    .boolean()
    .describe("False where so many fit `q` that they were not counted: there are at least `total`, at least `counts`."),
  next: nextSchema,
});

export const summaryRoutes: Routes = (app, { store }) => {
  app.get(
    "/api/session-summaries",
    {
      schema: {
        tags: ["sessions"],
        operationId: "listSessionSummaries",
        summary: "Find sessions, newest first, without their states; with counts by status",
        querystring: summariesQuery,
        response: answers(200, summariesSchema, 400),
      },
    },
    async ({ query: { status, session_id, q, sort, after, ...filter } }) => {
      const found = await store.summarizeSessions({
        ...filter,
        ...toOrder({ sort, after }),
        ...(status === undefined ? {} : { statuses: [status].flat() }),
        ...(session_id === undefined ? {} : { session_ids: [session_id].flat() }),
        ...(q ? { q } : {}),
      });
      return { ...found, next: nextAfter(found.sessions, { limit: filter.limit, sort }) };
    },
  );
};
