import { z } from "zod";
import { type JsonValue, jsonObjectSchema, jsonSchema } from "./json.ts";
import type { Step } from "./step.ts";
import { frameOutSchema } from "./step-frame.ts";

/** What a rerun may change compared with the recorded step. */
export const rerunRequestSchema = z.object({
  model: z.string().min(1).max(200).optional().describe("provider/model, instead of the configured one."),
  guidance: jsonSchema
    .optional()
    .describe("Replaces the guidance that the step received: a list of pieces, or a single piece that is not a list."),
  state: jsonObjectSchema.optional().describe("Replaces the state that the step started from."),
});
export type RerunRequest = z.infer<typeof rerunRequestSchema>;

/** The result of a rerun. It is not stored. */
export const rerunSchema = z.object({
  frame: frameOutSchema.nullable().describe("What the step returned; null if it failed."),
  error: z.string().nullable(),
  latency_ms: z.number().min(0),
  tokens_used: z.int().min(0),
  moniker_version: z.string().nullable().describe("The version of the code that ran."),
  differs: z.boolean().describe("Whether the result differs from the recorded step."),
  differences: z.array(z.string()).describe("The frame's fields that differ; `error` if only one of the two failed."),
});
export type Rerun = z.infer<typeof rerunSchema>;

export type RerunOutcome =
  | { kind: "ran"; rerun: Rerun }
  | { kind: "unknown"; what: "session" | "step" }
  | { kind: "invalid"; path: string; message: string };

/** The frame that a step's row was made from, as far as the row keeps it. */
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
