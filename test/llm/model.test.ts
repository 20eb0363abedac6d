import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EverstepError } from "../../src/domain/errors.ts";
import { readConfig } from "../../src/main/config.ts";
import { bamlClient } from "../../src/monikers/llm/baml-client.ts";
import { type ModelEnvironment, readModel } from "../../src/monikers/llm/model.ts";

const KEYS: ModelEnvironment = {
  OPENAI_API_KEY: "sk-openai",
  ANTHROPIC_API_KEY: "sk-anthropic",
  GOOGLE_API_KEY: "sk-google",
  OPENROUTER_API_KEY: "sk-openrouter",
  AZURE_OPENAI_API_KEY: "sk-azure",
  AZURE_OPENAI_BASE_URL: "https://mine.openai.azure.com/",
};
const USAGE = { stream_options: { include_usage: true } };

const PROVIDERS: [model: string, more: ModelEnvironment, provider: string, options: Record<string, unknown>][] = [
  ["openai/gpt-5", {}, "openai", { model: "gpt-5", api_key: "sk-openai", ...USAGE }],
  [
    "openai/local",
    { OPENAI_BASE_URL: "http://127.0.0.1:8080/v1" },
    "openai-generic",
    { model: "local", base_url: "http://127.0.0.1:8080/v1", api_key: "sk-openai", ...USAGE },
  ],
  ["anthropic/claude", {}, "anthropic", { model: "claude", api_key: "sk-anthropic", max_tokens: 8192 }],
  [
    "anthropic/claude",
    { ANTHROPIC_BASE_URL: "http://127.0.0.1:1" },
    "anthropic",
    { model: "claude", api_key: "sk-anthropic", max_tokens: 8192, base_url: "http://127.0.0.1:1" },
  ],
  ["google/gemini", {}, "google-ai", { model: "gemini", api_key: "sk-google", generationConfig: {} }],
  [
    "openrouter/meta/llama-4:free",
    {},
    "openai-generic",
    {
      model: "meta/llama-4:free",
      base_url: "https://openrouter.ai/api/v1",
      api_key: "sk-openrouter",
      ...USAGE,
    },
  ],
  ["ollama/qwen3", {}, "openai-generic", { model: "qwen3", base_url: "http://127.0.0.1:11434/v1", ...USAGE }],
  [
    "ollama/qwen3",
    { OLLAMA_BASE_URL: "http://gpu:11434/v1" },
    "openai-generic",
    { model: "qwen3", base_url: "http://gpu:11434/v1", ...USAGE },
  ],
  [
    "azure/my deployment",
    {},
    "azure-openai",
    {
      base_url: "https://mine.openai.azure.com/openai/deployments/my%20deployment",
      api_version: "2024-10-21",
      api_key: "sk-azure",
      ...USAGE,
    },
  ],
];

const invalid = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EverstepError);
  assert.equal(error.code, "config_invalid");
  assert.match(error.message, pattern);
  for (const key of Object.values(KEYS)) assert.ok(!error.message.includes(key), "a key is in the message");
  return true;
};

describe("the model that the environment names", () => {
  test("is none where none is named, whatever keys there are", () => {
    assert.equal(readModel({}), null);
    assert.equal(readModel(KEYS), null);
    assert.equal(readModel(readConfig({ EVERSTEP_MODEL: "", OPENAI_API_KEY: "" })), null);
  });

  for (const [name, more, provider, options] of PROVIDERS)
    test(`${name} with ${JSON.stringify(more)} is ${provider}`, () => {
      const model = readModel({ ...KEYS, ...more, EVERSTEP_MODEL: name });
      assert.ok(model?.name === name);
      assert.deepEqual(bamlClient(model, {}), { provider, options });
    });

  test("has no key if it is a self-hosted server that needs none", () => {
    const model = readModel({ EVERSTEP_MODEL: "openai/local", OPENAI_BASE_URL: "http://127.0.0.1:8080/v1" });
    assert.ok(model && !("api_key" in bamlClient(model, {}).options));
  });

  test("is called as its provider wants: OpenAI by responses, compatible servers by chat completions", () => {
    const api = (name: string, more: ModelEnvironment = {}) =>
      readModel({ ...KEYS, ...more, EVERSTEP_MODEL: name })?.api;
    assert.equal(api("openai/gpt-5"), "openai-responses");
    assert.equal(api("openai/gpt-5", { OPENAI_API: "chat" }), "openai-chat");
    assert.equal(api("openai/gpt-5", { OPENAI_BASE_URL: "https://api.openai.com/v1/" }), "openai-responses");
    assert.equal(api("openai/local", { OPENAI_BASE_URL: "http://127.0.0.1:8080/v1" }), "openai-compatible");
    const mirror = { OPENAI_BASE_URL: "http://127.0.0.1:8080/v1", OPENAI_API: "responses" };
    assert.equal(api("openai/local", mirror), "openai-responses");
    assert.equal(api("anthropic/claude"), "anthropic");
    assert.equal(api("google/gemini"), "google");
    assert.equal(api("azure/x"), "azure");
    assert.equal(api("openrouter/meta/llama-4:free"), "openai-compatible");
    assert.equal(api("ollama/qwen3"), "openai-compatible");
  });

  const MISSING: [model: string, variable: keyof ModelEnvironment][] = [
    ["openai/x", "OPENAI_API_KEY"],
    ["anthropic/x", "ANTHROPIC_API_KEY"],
    ["google/x", "GOOGLE_API_KEY"],
    ["openrouter/x", "OPENROUTER_API_KEY"],
    ["azure/x", "AZURE_OPENAI_API_KEY"],
    ["azure/x", "AZURE_OPENAI_BASE_URL"],
  ];
  for (const [name, variable] of MISSING)
    test(`${name} without ${variable} is refused with a word about it`, () => {
      const { [variable]: _, ...others } = KEYS;
      assert.throws(() => readModel({ ...others, EVERSTEP_MODEL: name }), invalid(new RegExp(variable)));
    });

  const BAD = [
    "gpt-5",
    "openai",
    "openai/",
    "/gpt-5",
    "nobody/gpt-5",
    "OpenAI/gpt-5",
    "constructor/x",
    "__proto__/x",
    " ",
  ];
  for (const name of BAD)
    test(`${JSON.stringify(name)} is refused with the providers' names`, () => {
      assert.throws(
        () => readModel({ ...KEYS, EVERSTEP_MODEL: name }),
        invalid(/openai, anthropic, google, openrouter, ollama, azure/),
      );
    });

  test("has a valid base address, or the program does not start", () => {
    for (const variable of ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OLLAMA_BASE_URL", "AZURE_OPENAI_BASE_URL"])
      assert.throws(() => readConfig({ [variable]: "not an address" }), invalid(new RegExp(variable)));
  });
});
