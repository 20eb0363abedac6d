import { z } from "zod";
import { offlineWork } from "../agent/offline-work.ts";
import { defineMoniker } from "../moniker.ts";

/** Any task, by the model alone: it gets the frame, and its reply is the next one. */
export const task = defineMoniker({
  name: "task",
  kind: "finite",
  description:
    "Works on a task with the model alone, without tools: in each step the model reads the state and writes the next one.",
  params: z.object({ task: z.string().min(1).max(200_000).describe("The task.") }),
  step(frame, context) {
    const { llm, params } = context;
    return llm ? llm.runStep(frame, params.task, context) : offlineWork(params.task, frame, context);
  },
});
