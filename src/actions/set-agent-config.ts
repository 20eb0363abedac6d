import { z } from "zod";
import type { AgentConfig } from "../domain/agent.ts";
import { now } from "../domain/ids.ts";
import { jsonObjectSchema } from "../domain/json.ts";
import { requestedOptionsSchema } from "../domain/session.ts";
import { type RequestParts, refusedOptions } from "./action-definition.ts";
import { refusedParams } from "./new-session.ts";
import { invalidField, type Refusal } from "./refusal.ts";

export const newAgentConfigSchema = z.object({
  moniker: z.string().min(1).max(200),
  params: jsonObjectSchema.optional(),
  options: requestedOptionsSchema.optional(),
  description: z.string().max(2000).nullish(),
});

/** Replaces an agent's defaults. Existing sessions keep theirs. */
export async function setAgentConfig(
  agent_id: string,
  { moniker, params, options, description }: z.infer<typeof newAgentConfigSchema>,
  { store, catalog, checkOptions }: RequestParts,
): Promise<{ kind: "set"; config: AgentConfig } | Refusal> {
  const task = catalog.get(moniker);
  if (!task) return invalidField("moniker", `no moniker is named ${JSON.stringify(moniker)}`);
  const refusal = refusedParams(task, params) ?? refusedOptions(options ?? {}, { checkOptions });
  if (refusal) return refusal;
  const config = {
    agent_id,
    moniker,
    params: params ?? {},
    options: options ?? {},
    description: description ?? null,
    updated_at: now(),
  };
  await store.commit({ agent_configs: [config] });
  return { kind: "set", config };
}
