import { z } from "zod";
import { answerFormSchema } from "../../domain/answer.ts";
import { type JsonObject, jsonObjectSchema } from "../../domain/json.ts";
import { timeAfter } from "../time-after.ts";
import type { ToolOutcome } from "../tool.ts";
import { toolError } from "../tool-server.ts";
import { ZodToolServer, zodTool } from "../zod-tool-server.ts";

const askTool = zodTool({
  name: "ask",
  description:
    "Asks people and waits for their answer, however long it takes. Use it when only a person can know or decide something.",
  input: z.object({
    question: z.string().min(1).max(10_000),
    choices: z
      .array(z.string().min(1))
      .min(1)
      .max(50)
      .optional()
      .describe("The answers to choose from. Default: any answer."),
    form: jsonObjectSchema
      .optional()
      .describe("Instead of choices: a flat JSON Schema object whose fields the person fills in."),
    wait_s: z.number().positive().optional().describe("Seconds after which to continue without an answer."),
  }),
  // The question is part of its step's frame, which is committed once.
  idempotent: true,
  leaves_no_trace: true,
  async run({ question, choices, form, wait_s }): Promise<ToolOutcome> {
    if (choices && form) return toolError("Give choices or a form, not both.");
    const problem = form && formProblem(form);
    if (problem) return toolError(problem);
    const ask = {
      text: question,
      ...(choices && { choices: choices.map((value) => ({ value })) }),
      ...(form && { schema: form }),
    };
    const until = wait_s === undefined ? {} : { until: timeAfter(wait_s) };
    return { kind: "ask", ask, ...until, resume: null };
  },
});

function formProblem(form: JsonObject): string | null {
  const [issue] = answerFormSchema.safeParse(form).error?.issues ?? [];
  return issue ? `The form cannot be shown: ${["form", ...issue.path].join(".")}: ${issue.message}` : null;
}

export const peopleServer = (): ZodToolServer => new ZodToolServer("people", [askTool]);
