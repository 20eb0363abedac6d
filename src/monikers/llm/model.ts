import { EverstepError } from "../../domain/errors.ts";

/** The language model as it is set up: a provider as BAML names it, and its options. */
export type Model = { provider: string; name: string; options: Record<string, unknown> };

export type ModelEnvironment = Partial<
  Record<
    | "EVERSTEP_MODEL"
    | "OPENAI_API_KEY"
    | "OPENAI_BASE_URL"
    | "ANTHROPIC_API_KEY"
    | "ANTHROPIC_BASE_URL"
    | "GOOGLE_API_KEY"
    | "OPENROUTER_API_KEY"
    | "OLLAMA_BASE_URL"
    | "AZURE_OPENAI_API_KEY"
    | "AZURE_OPENAI_BASE_URL"
    | "AZURE_OPENAI_API_VERSION",
    string
  >
>;

type Provider = (model: string, environment: ModelEnvironment) => Omit<Model, "name">;

/** Streams of these report tokens only where they are asked to. */
const WITH_USAGE = { stream_options: { include_usage: true } };

const PROVIDERS: Readonly<Record<string, Provider>> = {
  openai: (model, { OPENAI_API_KEY, OPENAI_BASE_URL }) =>
    // Servers that only speak the wire format (Ollama, llama-server, vLLM) need no key.
    OPENAI_BASE_URL === undefined
      ? { provider: "openai", options: { model, api_key: required("OPENAI_API_KEY", OPENAI_API_KEY), ...WITH_USAGE } }
      : {
          provider: "openai-generic",
          options: { model, base_url: OPENAI_BASE_URL, ...withKey(OPENAI_API_KEY), ...WITH_USAGE },
        },
  anthropic: (model, { ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL }) => ({
    provider: "anthropic",
    options: {
      model,
      api_key: required("ANTHROPIC_API_KEY", ANTHROPIC_API_KEY),
      max_tokens: 8192,
      ...withUrl(ANTHROPIC_BASE_URL),
    },
  }),
  google: (model, { GOOGLE_API_KEY }) => ({
    provider: "google-ai",
    options: { model, api_key: required("GOOGLE_API_KEY", GOOGLE_API_KEY) },
  }),
  openrouter: (model, { OPENROUTER_API_KEY }) => ({
    provider: "openrouter",
    options: { model, api_key: required("OPENROUTER_API_KEY", OPENROUTER_API_KEY), ...WITH_USAGE },
  }),
  ollama: (model, { OLLAMA_BASE_URL }) => ({
    provider: "openai-generic",
    options: { model, base_url: OLLAMA_BASE_URL ?? "http://127.0.0.1:11434/v1", ...WITH_USAGE },
  }),
  azure: (model, { AZURE_OPENAI_API_KEY, AZURE_OPENAI_BASE_URL, AZURE_OPENAI_API_VERSION }) => ({
    provider: "azure-openai",
    options: {
      base_url: `${required("AZURE_OPENAI_BASE_URL", AZURE_OPENAI_BASE_URL).replace(/\/$/, "")}/openai/deployments/${encodeURIComponent(model)}`,
      api_version: AZURE_OPENAI_API_VERSION ?? "2024-10-21",
      api_key: required("AZURE_OPENAI_API_KEY", AZURE_OPENAI_API_KEY),
      ...WITH_USAGE,
    },
  }),
};

/** The model that `EVERSTEP_MODEL=provider/model` names; null where none is named. */
export function readModel(environment: ModelEnvironment): Model | null {
  const wanted = environment.EVERSTEP_MODEL;
  if (wanted === undefined) return null;
  const slash = wanted.indexOf("/");
  const named = wanted.slice(0, slash);
  const provider = Object.hasOwn(PROVIDERS, named) ? PROVIDERS[named] : undefined;
  if (slash < 1 || !provider || slash === wanted.length - 1)
    throw new EverstepError(
      "config_invalid",
      `EVERSTEP_MODEL=${wanted} is not provider/model`,
      `the providers are ${Object.keys(PROVIDERS).join(", ")}`,
    );
  return { name: wanted, ...provider(wanted.slice(slash + 1), environment) };
}

const withKey = (api_key: string | undefined) => (api_key === undefined ? {} : { api_key });
const withUrl = (base_url: string | undefined) => (base_url === undefined ? {} : { base_url });

function required(name: string, value: string | undefined): string {
  if (value !== undefined) return value;
  throw new EverstepError(
    "config_invalid",
    `EVERSTEP_MODEL needs ${name}, which is not set`,
    `set ${name}, or unset EVERSTEP_MODEL to work without a model`,
  );
}
