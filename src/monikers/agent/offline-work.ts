import type { FrameIn, FrameOut } from "../../domain/step-frame.ts";
import type { StepContext } from "../moniker.ts";
import { quotesFor } from "../tools/quotes.ts";

/** The result of a task when there is no model: says so, and quotes what the workspace contains. */
export async function offlineWork(
  task: string,
  { step, state }: FrameIn,
  { tools, emit }: Pick<StepContext, "tools" | "emit">,
): Promise<FrameOut> {
  const quotes = await quotesFor(task, "", tools.workspace);
  const findings =
    quotes.length > 0
      ? `This is what the files of the workspace say about it:\n${quotes.join("\n")}`
      : "The files of the workspace say nothing about it.";
  const text = `No language model is configured, so nobody worked on the task. Set EVERSTEP_MODEL=provider/model to give me one.\n\n${findings}`;
  emit({ kind: "delta", text });
  return { step, next_step: "done", state, text, data: { has_model: false }, done: true };
}
