import { EverstepError } from "../../domain/errors.ts";

/** A configured language model: its address and the API the provider speaks. */
export type Model = {
  /** `provider/model`, as people write it. */
  name: string;
  provider: string;
  /** The provider's name for it; on Azure, the deployment. */
  id: string;
  api: "openai-responses" | "openai-chat" | "openai-compatible" | "anthropic" | "google" | "azure";
  key: string | undefined;
  /** Without a trailing slash; undefined: the provider's default. */
  base_url: string | undefined;
  /** Azure only. */
  api_version?: string;
};

export type ModelEnvironment = Partial<
  Record<
    | "EVERSTEP_MODEL"
    | "OPENAI_API_KEY"
    | "OPENAI_BASE_URL"
    | "OPENAI_API"
    | "ANTHROPIC_API_KEY"
    | "ANTHROPIC_BASE_URL"
    | "GOOGLE_API_KEY"
    | "GOOGLE_BASE_URL"
    | "OPENROUTER_API_KEY"
    | "OPENROUTER_BASE_URL"
    | "OLLAMA_BASE_URL"
    | "AZURE_OPENAI_API_KEY"
    | "AZURE_OPENAI_BASE_URL"
    | "AZURE_OPENAI_API_VERSION",
    string
  >
>;

type Connection = Omit<Model, "name" | "provider" | "id">;
type Provider = (environment: ModelEnvironment) => Connection;

const PROVIDERS: Readonly<Record<string, Provider>> = {
  openai: ({ OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_API }) => {
    const base_url = withoutSlash(OPENAI_BASE_URL);
    // Servers that only share the wire format (llama-server, vLLM) need no key and support little beyond chat completions.
    const isCompatible = base_url !== undefined && new URL(base_url).hostname !== "api.openai.com";
    const key = isCompatible ? OPENAI_API_KEY : required("OPENAI_API_KEY", OPENAI_API_KEY);
    if (OPENAI_API === "responses") return { api: "openai-responses", key, base_url };
    if (isCompatible) return { api: "openai-compatible", key, base_url };
    return { api: OPENAI_API === "chat" ? "openai-chat" : "openai-responses", key, base_url };
  },
  anthropic: ({ ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL }) => ({
    api: "anthropic",
    key: required("ANTHROPIC_API_KEY", ANTHROPIC_API_KEY),
    // Some people include the version; it is added where needed.
    base_url: withoutSlash(ANTHROPIC_BASE_URL)?.replace(/\/v1$/, ""),
  }),
  google: ({ GOOGLE_API_KEY, GOOGLE_BASE_URL }) => ({
    api: "google",
    key: required("GOOGLE_API_KEY", GOOGLE_API_KEY),
    base_url: withoutSlash(GOOGLE_BASE_URL),
  }),
  openrouter: ({ OPENROUTER_API_KEY, OPENROUTER_BASE_URL }) => ({
    api: "openai-compatible",
    key: required("OPENROUTER_API_KEY", OPENROUTER_API_KEY),
    base_url: withoutSlash(OPENROUTER_BASE_URL) ?? "https://openrouter.ai/api/v1",
  }),
  ollama: ({ OLLAMA_BASE_URL }) => ({
    api: "openai-compatible",
    key: undefined,
    base_url: withoutSlash(OLLAMA_BASE_URL) ?? "http://127.0.0.1:11434/v1",
  }),
  azure: ({ AZURE_OPENAI_API_KEY, AZURE_OPENAI_BASE_URL, AZURE_OPENAI_API_VERSION }) => ({
    api: "azure",
    key: required("AZURE_OPENAI_API_KEY", AZURE_OPENAI_API_KEY),
    base_url: withoutSlash(required("AZURE_OPENAI_BASE_URL", AZURE_OPENAI_BASE_URL)),
    api_version: AZURE_OPENAI_API_VERSION ?? "2024-10-21",
  }),
};

/** The model named by `EVERSTEP_MODEL=provider/model`; null if unset. */
export function readModel(environment: ModelEnvironment): Model | null {
  const { EVERSTEP_MODEL } = environment;
  return EVERSTEP_MODEL === undefined ? null : readNamedModel(EVERSTEP_MODEL, environment, "EVERSTEP_MODEL=");
}

/** The model of that name. Throws an `EverstepError` if the name is wrong or a setting is missing. */
export function readNamedModel(name: string, environment: ModelEnvironment, setting = ""): Model {
  const { provider, id, connect } = requireProvider(name, setting);
  return { name, provider, id, ...connect(environment) };
}

/** Splits a model's name; its provider must exist. */
export function requireProvider(name: string, setting = ""): { provider: string; id: string; connect: Provider } {
  const slash = name.indexOf("/");
  const provider = name.slice(0, slash);
  const connect = Object.hasOwn(PROVIDERS, provider) ? PROVIDERS[provider] : undefined;
  if (slash < 1 || !connect || slash === name.length - 1)
    throw new EverstepError(
      "config_invalid",
      `${setting}${name} is not provider/model`,
      `the providers are ${Object.keys(PROVIDERS).join(", ")}`,
    );
  return { provider, id: name.slice(slash + 1), connect };
}

const withoutSlash = <Url extends string | undefined>(url: Url): Url => url?.replace(/\/+$/, "") as Url;

function required(name: string, value: string | undefined): string {
  if (value !== undefined) return value;
  throw new EverstepError(
    "config_invalid",
    `the model needs ${name}, which is not set`,
    `set ${name}, or choose another model`,
  );
}
