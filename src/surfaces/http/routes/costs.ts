import { z } from "zod";
import type { SessionCosts } from "../../../domain/cost.ts";
import { timeSchema } from "../../../domain/ids.ts";
import type { Routes } from "../context.ts";
import { answers } from "../schemas.ts";

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
/** The most groups listed; of more, the most expensive ones. */
const MOST = 1000;

const sumSchema = z.object({
  sessions: z.int().min(0),
  tokens_used: z.number().min(0),
  cost_usd: z.number().min(0).describe("Usage without a known price counts as 0."),
});

const costsSchema = z.object({
  by: z.enum(["day", "agent", "model"]),
  since: timeSchema,
  prices_as_of: z.string().describe("The date of the newest entry in the price catalog; later changes are missing."),
  total: sumSchema,
  costs: z
    .array(sumSchema.extend({ key: z.string().nullable() }))
    .describe("By `key`: a day, an agent's id, or a model; null for sessions without a model."),
});

export const costRoutes: Routes = (app, { store, models }) => {
  app.get(
    "/api/costs",
    {
      schema: {
        tags: ["system"],
        operationId: "getCosts",
        summary: "What sessions cost, by start date, agent or model",
        querystring: z.object({
          by: z.enum(["day", "agent", "model"]).default("day"),
          since: z
            .union([timeSchema, z.iso.date()])
            .optional()
            .describe(`Only sessions started since. Default: ${DEFAULT_DAYS} days ago.`),
        }),
        response: answers(200, costsSchema, 400),
      },
    },
    async ({ query: { by, since } }) => {
      const from = new Date(since === undefined ? Date.now() - DEFAULT_DAYS * DAY_MS : Date.parse(since)).toISOString();
      const rows = await store.sumCosts(from);
      const keyOf = { day: "day", agent: "agent_id", model: "model" } as const;
      const groups = Map.groupBy(rows, (row) => row[keyOf[by]] ?? models.default_model);
      const costs = [...groups].map(([key, members]) => ({ key, ...sumOf(members) }));
      const sorted =
        by === "day"
          ? costs.toSorted((one, other) => ((one.key ?? "") < (other.key ?? "") ? 1 : -1))
          : costs.toSorted((one, other) => other.cost_usd - one.cost_usd || other.tokens_used - one.tokens_used);
      const prices_as_of = await models.pricesAsOf();
      return { by, since: from, prices_as_of, total: sumOf(rows), costs: sorted.slice(0, MOST) };
    },
  );
};

function sumOf(rows: readonly SessionCosts[]): z.infer<typeof sumSchema> {
  const sum = { sessions: 0, tokens_used: 0, cost_usd: 0 };
  for (const { sessions, tokens_used, cost_usd } of rows) {
    sum.sessions += sessions;
    sum.tokens_used += tokens_used;
    sum.cost_usd += cost_usd;
  }
  return { ...sum, cost_usd: Math.round(sum.cost_usd * 1e9) / 1e9 };
}
