import { z } from "zod";
import { loopStep } from "../agent/agent-loop.ts";
import { offlineWork } from "../agent/offline-work.ts";
import { toolGlobs } from "../agent/tool-globs.ts";
import { defineMoniker } from "../moniker.ts";

const INSTRUCTIONS =
  "You are an agent that works on a task with tools until it is done. Take one step after the other, check what you did, and do not guess what a tool can tell. When the task is done, answer with the result and call no more tools.";

type Params = { task: string; instructions?: string | undefined; tools?: string[] | undefined };

export const agent = defineMoniker<Params>({
  name: "agent",
  kind: "finite",
  description: "Works on a task with tools until it is done; every model call and every tool call is a durable step.",
  params: z.object({
    task: z.string().min(1).max(200_000).describe("The task."),
    instructions: z.string().max(20_000).optional().describe("How the agent should behave."),
    tools: toolGlobs,
  }),
  first_step: "think/1",
  step(frame, context) {
    const { task, instructions, tools } = context.params;
    if (!context.llm) return offlineWork(task, frame, context);
    const own = instructions === undefined ? INSTRUCTIONS : `${INSTRUCTIONS}\n\n${instructions}`;
    return loopStep({ frame, context, llm: context.llm, profile: { instructions: own, tools, task } });
  },
});
