import { defineMoniker } from "everstep/moniker";
import { z } from "zod";

const CODE = 'export const greet = (name: string) => {\n  // says hello\n  return "hello " + name;\n};';

/** Reports one model call and two tool calls, as a moniker with its own client does. */
export default defineMoniker({
  name: "caller",
  kind: "finite",
  description: "Calls a model and two tools.",
  params: z.object({}),
  async step({ step, state }, { emit }) {
    emit({
      kind: "call",
      call: {
        kind: "model",
        name: "acme/large-2",
        input: {
          instructions: "You write TypeScript.",
          earlier_messages: 4,
          messages: [{ role: "user", text: `Mend this:\n\`\`\`ts\n${CODE}\n\`\`\`` }],
          tools: ["files/read", "files/write"],
        },
        output: {
          text: "I read the file first.",
          tool_calls: [{ id: "1", name: "files/read", args: { path: "a.ts" } }],
        },
        tokens: 1300,
        input_tokens: 1204,
        output_tokens: 96,
        cached_tokens: 800,
        cost_usd: 0.0042,
        latency_ms: 812,
      },
    });
    const lines = Array.from({ length: 12 }, (_, line) => ({ line, text: line === 9 ? "needle" : `row ${line}` }));
    emit({
      kind: "call",
      call: {
        kind: "tool",
        name: "files/read",
        input: { path: "a.ts" },
        output: { code: CODE, lines },
        latency_ms: 14,
      },
    });
    const error = "not_allowed: b.ts is outside of the folder";
    emit({
      kind: "call",
      call: { kind: "tool", name: "files/write", input: { path: "../b.ts" }, output: null, error, latency_ms: 3 },
    });
    emit({ kind: "usage", tokens: 1300, cost_usd: 0.0042 });
    return { step, next_step: "end", state, text: "Done.", done: true };
  },
});
