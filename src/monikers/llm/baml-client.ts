import type { ModelSettings } from "../../domain/session.ts";
import type { Model } from "./model.ts";

/** A provider as BAML names it, and its client options. */
export type BamlClient = { provider: string; options: Record<string, unknown> };

/** These report tokens of a stream only on request. */
const WITH_USAGE = { stream_options: { include_usage: true } };
/** Anthropic requires a limit. */
const ANTHROPIC_MAX_TOKENS = 8192;

/** A model as BAML calls it. Reasoning stays at the model's default: the adapters have no common setting for it. */
export function bamlClient(model: Model, { temperature, max_output_tokens }: ModelSettings): BamlClient {
  const { id, api, key, base_url } = model;
  const options = {
    ...(key === undefined ? {} : { api_key: key }),
    ...(temperature === undefined ? {} : { temperature }),
  };
  const at = base_url === undefined ? {} : { base_url };
  const most = max_output_tokens === undefined ? {} : { max_tokens: max_output_tokens };
  const completion = max_output_tokens === undefined ? {} : { max_completion_tokens: max_output_tokens };
  switch (api) {
    case "openai-responses":
    case "openai-chat":
      return { provider: "openai", options: { model: id, ...at, ...options, ...completion, ...WITH_USAGE } };
    case "openai-compatible":
      return { provider: "openai-generic", options: { model: id, ...at, ...options, ...most, ...WITH_USAGE } };
    case "anthropic": {
      const max_tokens = max_output_tokens ?? ANTHROPIC_MAX_TOKENS;
      return { provider: "anthropic", options: { model: id, ...at, ...options, max_tokens } };
    }
    case "google": {
      const { api_key } = { api_key: key };
      const generationConfig = {
        ...(temperature === undefined ? {} : { temperature }),
        ...(max_output_tokens === undefined ? {} : { maxOutputTokens: max_output_tokens }),
      };
      return { provider: "google-ai", options: { model: id, ...at, api_key, generationConfig } };
    }
    case "azure":
      return {
        provider: "azure-openai",
        options: {
          base_url: `${base_url}/openai/deployments/${encodeURIComponent(id)}`,
          api_version: model.api_version,
          ...options,
          ...completion,
          ...WITH_USAGE,
        },
      };
  }
  return api satisfies never;
}
