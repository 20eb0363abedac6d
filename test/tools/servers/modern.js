// A server of the 2026 revision: requests input through its results, and keeps no state.
import { serve, tool } from "./json-rpc.js";

const complete = (result) => ({ resultType: "complete", ...result });
const form = (message, properties) => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: { type: "object", properties, required: Object.keys(properties) } },
});

serve({
  "server/discover": () =>
    complete({
      ttlMs: 0,
      cacheScope: "private",
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {} },
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "modern", version: "1" } },
    }),
  "tools/list": () => complete({ ttlMs: 0, cacheScope: "private", tools: [tool("book"), tool("sample")] }),
  "tools/call": ({ name, arguments: args, inputResponses, requestState }) => {
    if (name === "sample")
      return {
        resultType: "input_required",
        inputRequests: { one: { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } } },
      };
    if (inputResponses)
      return complete({ content: [{ type: "text", text: JSON.stringify({ args, inputResponses, requestState }) }] });
    return {
      resultType: "input_required",
      requestState: "state of the server",
      inputRequests: { seat: form("Which seat?", { row: { type: "integer" } }), sure: form("Really?", {}) },
    };
  },
});
