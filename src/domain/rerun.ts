import { z } from "zod";
import { type JsonValue, jsonObjectSchema, jsonSchema } from "./json.ts";
import type { Step } from "./step.ts";
import { frameOutSchema } from "./step-frame.ts";

/** What may differ from the recorded step when it runs once more. */
export const rerunRequestSchema = z.object({
  model: z.string().min(1).max(200).optional().describe("provider/model, instead of the one that is configured."),
  guidance: jsonSchema
    .optional()
    .describe("Instead of what the step was given: a list of pieces, or one piece that is no list."),
  state: jsonObjectSchema.optional().describe("Instead of the state that the step started from."),
});
export type RerunRequest = z.infer<typeof rerunRequestSchema>;

/** What came of it. Nothing of it is stored. */
export const rerunSchema = z.object({
  frame: frameOutSchema.nullable().describe("What the step returned; null where it failed."),
  error: z.string().nullable(),
  latency_ms: z.number().min(0),
  tokens_used: z.int().min(0),
  moniker_version: z.string().nullable().describe("The version of the code that ran."),
  differs: z.boolean().describe("Whether it is anything but what was recorded."),
  differences: z
    .array(z.string())
    .describe("The fields of the frame that differ; `error` where only one of the two failed."),
});
export type Rerun = z.infer<typeof rerunSchema>;

export type RerunOutcome =
  | { kind: "ran"; rerun: Rerun }
  | { kind: "unknown"; what: "session" | "step" }
  | { kind: "invalid"; path: string; message: string };

/** A step's row as the frame that it was made of, as far as the row has it. */
export const recordedFrame = (step: Step): Record<string, JsonValue> => ({
  next_step: step.next_step_token,
  state: step.state,
  text: step.text,
  data: step.data,
  notes: step.notes,
  wait: (step.directives?.wait as JsonValue | undefined) ?? null,
  ask: (step.directives?.ask as JsonValue | undefined) ?? null,
  once: step.directives?.once ?? null,
  go_on: step.directives?.go_on ?? null,
});
