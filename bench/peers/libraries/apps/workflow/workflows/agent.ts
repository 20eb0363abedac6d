import { type ModelCallStreamPart, WorkflowAgent } from "@ai-sdk/workflow";
import { getWritable } from "workflow";
import { z } from "zod";
import { countCall } from "../../../../agent/count-call.ts";
import { INSTRUCTIONS, TOOL } from "../../../../agent/script.ts";
import { BenchModel } from "./model.ts";

// Sources: node_modules/workflow/docs/ai/chat-session-modeling.mdx ("Single-turn workflows") and defining-tools.mdx (tools are
// steps).

async function count(input: { session_id: string; call: number }) {
  "use step";
  return countCall(input);
}

export async function agent(task: string) {
  "use workflow";
  const inputSchema = z.object({ session_id: z.string(), call: z.number() });
  const worker = new WorkflowAgent({
    model: new BenchModel() as never,
    instructions: INSTRUCTIONS,
    tools: { [TOOL.name]: { description: TOOL.description, inputSchema, execute: count } },
  });
  await worker.stream({ messages: [{ role: "user", content: task }], writable: getWritable<ModelCallStreamPart>() });
}
