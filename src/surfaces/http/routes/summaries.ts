import { z } from "zod";
import { idSchema, timeSchema } from "../../../domain/ids.ts";
import { sessionCountsSchema, sessionStatusSchema } from "../../../domain/session.ts";
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
  spawned_by: idSchema.optional().describe("Only sessions that a step of this session started."),
  parent_session_id: idSchema.optional().describe("Only forks of this session."),
  since: timeSchema.optional().describe("Only sessions created since, or updated since if sorted by `updated_at`."),
  ...orderQuery,
  ...pageQuery,
});

const count = z.int().min(0);
const summariesSchema = z.object({
  sessions: z.array(sessionSummarySchema),
  total: count.describe("The total number of matches."),
  counts: sessionCountsSchema.describe("Matches by status, regardless of the `status` filter."),
  exact: z
    .boolean()
    .describe(
      "False if too many sessions match `q` or `since` to be counted: `total` and `counts` are then lower bounds.",
    ),
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
      const page = await store.summarizeSessions({
        ...filter,
        ...toOrder({ sort, after }),
        ...(status === undefined ? {} : { statuses: [status].flat() }),
        ...(session_id === undefined ? {} : { session_ids: [session_id].flat() }),
        ...(q ? { q } : {}),
      });
      return { ...page, next: nextAfter(page.sessions, { limit: filter.limit, sort }) };
    },
  );
};
