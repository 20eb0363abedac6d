import { z } from "zod";
import { idSchema, timeSchema } from "./ids.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";
import { directivesSchema } from "./step-frame.ts";

export const stepStatusSchema = z.enum(["ok", "error"]);
export type StepStatus = z.infer<typeof stepStatusSchema>;

/** A call of a model or a tool within a step. */
const stepCallSchema = z.object({
  kind: z.enum(["model", "tool"]),
  /** The model that answered as `provider/model`, or the tool as `server/tool`. */
  name: z.string(),
  /** What was asked, and what came back; null where that is not kept (`EVERSTEP_KEEP_CALLS=off`). */
  input: jsonSchema,
  output: jsonSchema,
  tokens: z.int().min(0).optional(),
  /** Of a model; `cached_tokens` are those of `input_tokens` that the provider had kept from an earlier call. */
  input_tokens: z.int().min(0).optional(),
  output_tokens: z.int().min(0).optional(),
  cached_tokens: z.int().min(0).optional(),
  /** The provider gave no figure. */
  estimated: z.boolean().optional(),
  /** Absent where no price is known. */
  cost_usd: z.number().min(0).optional(),
  latency_ms: z.number().min(0),
  error: z.string().optional(),
});
export type StepCall = z.infer<typeof stepCallSchema>;

/** What is known of a call beside its row, for a trace. */
export type CallSpan = {
  /** Its span, where that was passed on to whoever was called. */
  traceparent?: string | undefined;
  finish_reason?: string | undefined;
  error_type?: string | undefined;
  settings?: { temperature?: number | undefined; max_output_tokens?: number | undefined };
};

/** A row of the append-only table `agent_steps`. An `error` row names the iteration that failed and does not use it up. */
export const stepSchema = z.object({
  id: idSchema,
  created_at: timeSchema,
  agent_id: idSchema,
  session_id: idSchema,
  iteration: z.int().min(0),
  step_token: z.string(),
  next_step_token: z.string(),
  status: stepStatusSchema,
  text: z.string().nullable(),
  data: jsonSchema,
  /** The whole state after this step; for an `error` row, the state that the attempt started from. */
  state: jsonObjectSchema,
  /** What this step consumed, and in `action_ids` who brought it. */
  guidance: z.array(jsonSchema),
  notes: z.string().nullable(),
  latency_ms: z.number().min(0),
  tokens_used: z.int().min(0),
  error: z.string().nullable(),
  action_ids: z.array(idSchema),
  /** Which version of the moniker's code ran; null where that is not known. */
  moniker_version: z.string().nullable(),
  cost_usd: z.number().min(0),
  /** Attempts that the step took, this one included. */
  attempts: z.int().min(1),
  /** What it asked models and tools. */
  calls: z.array(stepCallSchema),
  /** What its frame said about the step to come; null where it said nothing. */
  directives: directivesSchema.nullable(),
});
export type Step = z.infer<typeof stepSchema>;
