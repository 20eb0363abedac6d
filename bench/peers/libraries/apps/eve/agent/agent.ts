import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { defineAgent } from "eve";

// Source: node_modules/eve/docs/agent-config.md ("Use a local model").
const baseURL = process.env["BENCH_MODEL_URL"] ?? "http://127.0.0.1:9/v1";
const bench = createOpenAICompatible({ name: "bench", baseURL, includeUsage: true });

export default defineAgent({ model: bench("bench"), modelContextWindowTokens: 200_000 });
