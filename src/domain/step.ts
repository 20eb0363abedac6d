import { z } from "zod";
import { idSchema, timeSchema } from "./ids.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";
import { directivesSchema } from "./step-frame.ts";

export const stepStatusSchema = z.enum(["ok", "error"]);
export type StepStatus = z.infer<typeof stepStatusSchema>;

/** A call to a model or a tool within a step. */
const stepCallSchema = z.object({
  kind: z.enum(["model", "tool"]),
  /** The model that answered as `provider/model`, or the tool as `server/tool`. */
  name: z.string(),
  /** The request and the response; null if they are not kept (`EVERSTEP_KEEP_CALLS=off`). */
  input: jsonSchema,
  output: jsonSchema,
  tokens: z.int().min(0).optional(),
  /** Only for models; `cached_tokens` is the part of `input_tokens` that the provider had cached. */
  input_tokens: z.int().min(0).optional(),
  output_tokens: z.int().min(0).optional(),
  cached_tokens: z.int().min(0).optional(),
  /** The provider reported no usage. */
  estimated: z.boolean().optional(),
  /** Absent if the price is unknown. */
  cost_usd: z.number().min(0).optional(),
  latency_ms: z.number().min(0),
  error: z.string().optional(),
});
export type StepCall = z.infer<typeof stepCallSchema>;

/** Details of a call for tracing that are not in its row. */
export type CallSpan = {
  /** The call's span, if it was propagated to the callee. */
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
  /** The whole state after this step; for an `error` row, the state the attempt started from. */
  state: jsonObjectSchema,
  /** The guidance this step consumed; `action_ids` are the actions that delivered it. */
  guidance: z.array(jsonSchema),
  notes: z.string().nullable(),
  latency_ms: z.number().min(0),
  tokens_used: z.int().min(0),
  error: z.string().nullable(),
  action_ids: z.array(idSchema),
  /** The version of the moniker's code that ran; null if unknown. */
  moniker_version: z.string().nullable(),
  cost_usd: z.number().min(0),
  /** The number of attempts the step took, including this one. */
  attempts: z.int().min(1),
  /** Attempts that ended because their process died. */
  crashes: z.int().min(0),
  /** Its calls to models and tools. */
  calls: z.array(stepCallSchema),
  /** What its frame said about the next step; null if nothing. */
  directives: directivesSchema.nullable(),
});
export type Step = z.infer<typeof stepSchema>;
