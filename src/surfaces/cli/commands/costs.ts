import { z } from "zod";
import type { ApiClient } from "../client.ts";
import { printable, table } from "../output.ts";

export type CostsOptions = { by: string; since?: string; json?: boolean };

const sumSchema = z.object({ sessions: z.int(), tokens_used: z.number(), cost_usd: z.number() });
const costsSchema = z.object({
  by: z.string(),
  since: z.string(),
  prices_as_of: z.string(),
  total: sumSchema,
  costs: z.array(sumSchema.extend({ key: z.string().nullable() })),
});

export async function costs(client: ApiClient, { by, since, json }: CostsOptions): Promise<void> {
  const answer = await client.get(costsSchema, "/api/costs", { by, since });
  if (json) return console.log(JSON.stringify(answer));
  const row = (name: string, { sessions, tokens_used, cost_usd }: z.infer<typeof sumSchema>): string[] => [
    name,
    String(sessions),
    String(tokens_used),
    cost_usd.toFixed(4),
  ];
  const rows = answer.costs.map(({ key, ...sum }) => row(printable(key ?? "(none)"), sum));
  console.log(table([by.toUpperCase(), "SESSIONS", "TOKENS", "DOLLARS"], [...rows, row("total", answer.total)]));
  console.log(`sessions since ${answer.since}, prices as of ${answer.prices_as_of} or from EVERSTEP_PRICES`);
}
