import type { VersionedMoniker } from "../../monikers/catalog.ts";
import type { ServerContext } from "../http/context.ts";
import { OpenAiError } from "./openai-error.ts";

type Parts = Pick<ServerContext, "store" | "catalog">;

/** What a request's `model` refers to: an agent, and the moniker of its sessions. */
export type TalkingModel = { agent_id: string; moniker: string; takes_instructions: boolean };

type ModelRow = { id: string; object: "model"; created: number; owned_by: string };

const MOST_AGENTS = 500;

/** Monikers that answer messages, and agents that run one of them. */
export async function listModels({ store, catalog }: Parts): Promise<ModelRow[]> {
  const page = { limit: MOST_AGENTS, offset: 0 };
  const [agents, configs] = await Promise.all([store.listAgents(page), store.listAgentConfigs(page)]);
  const row = (id: string, owned_by: string): ModelRow => ({ id, object: "model", created: 0, owned_by });
  const models = new Map<string, ModelRow>();
  for (const { name } of [...catalog.values()].filter(talks)) models.set(name, row(name, "everstep"));
  for (const { agent_id, moniker } of [...configs, ...agents])
    if (!models.has(agent_id) && talks(catalog.get(moniker))) models.set(agent_id, row(agent_id, moniker));
  return [...models.values()];
}

export async function findModel({ store, catalog }: Parts, model: string): Promise<TalkingModel> {
  const config = await store.getAgentConfig(model);
  const name = config?.moniker ?? (catalog.get(model) ? model : (await store.getAgent(model))?.moniker);
  const moniker = name === undefined ? undefined : catalog.get(name);
  if (!moniker || !talks(moniker))
    throw new OpenAiError(
      404,
      `the model ${model} does not exist; GET /v1/models lists the models`,
      "model_not_found",
      "model",
    );
  const takes_instructions =
    config === null && moniker.params.safeParse({ instructions: "" }).success && moniker.name === "chat";
  return { agent_id: model, moniker: moniker.name, takes_instructions };
}

const talks = (moniker: VersionedMoniker | undefined): boolean => moniker?.kind === "reactive";
