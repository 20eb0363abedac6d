import type { createOpenAI } from "@ai-sdk/openai";
import type { Model } from "./model.ts";
import { modelFetch } from "./model-fetch.ts";

/** The only file that uses the AI SDK's packages, which change often. A provider's package is loaded on first use. */
export type ProviderModel = ReturnType<ReturnType<typeof createOpenAI>["chat"]>;
export type CallOptions = Parameters<ProviderModel["doStream"]>[0];
export type Prompt = CallOptions["prompt"];
export type PromptMessage = Prompt[number];
export type AssistantPart = Extract<PromptMessage, { role: "assistant" }>["content"][number];
type StreamResult = Awaited<ReturnType<ProviderModel["doStream"]>>;
export type StreamPart = StreamResult["stream"] extends ReadableStream<infer Part> ? Part : never;
export type FinishReason = Extract<StreamPart, { type: "finish" }>["finishReason"];

/** Options for every call to a provider, beyond the common settings. */
export function providerOptions({ api }: Model): NonNullable<CallOptions["providerOptions"]> {
  // A session's knowledge is in its own state: nothing is stored at the provider, where it would expire.
  return api === "openai-responses" ? { openai: { store: false } } : {};
}

export async function openProviderModel(model: Model): Promise<ProviderModel> {
  const { id, api, key, base_url: baseURL } = model;
  const at = { fetch: modelFetch, ...(baseURL === undefined ? {} : { baseURL }) };
  const by = key === undefined ? {} : { apiKey: key };
  switch (api) {
    case "openai-responses":
    case "openai-chat": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      // Without a key the package would read one from the environment.
      const provider = createOpenAI({ ...at, apiKey: key ?? "none" });
      return api === "openai-chat" ? provider.chat(id) : provider.responses(id);
    }
    case "openai-compatible": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({
        ...at,
        name: model.provider,
        baseURL: baseURL ?? "",
        ...by,
        includeUsage: true,
        // Makes it report the price as well.
        ...(model.provider === "openrouter" && {
          transformRequestBody: (body: Record<string, unknown>) => ({ ...body, usage: { include: true } }),
        }),
      }).chatModel(id);
    }
    case "anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic({
        ...at,
        ...(baseURL === undefined ? {} : { baseURL: `${baseURL}/v1` }),
        ...by,
      }).languageModel(id);
    }
    case "google": {
      const { createGoogle } = await import("@ai-sdk/google");
      return createGoogle({ ...at, ...by }).languageModel(id);
    }
    case "azure": {
      const { createAzure } = await import("@ai-sdk/azure");
      const apiVersion = model.api_version ?? "v1";
      return createAzure({ ...at, baseURL: `${baseURL}/openai`, ...by, apiVersion, useDeploymentBasedUrls: true }).chat(
        id,
      );
    }
  }
  return api satisfies never;
}
