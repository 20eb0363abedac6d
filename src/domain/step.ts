import { z } from "zod";
import { idSchema, timeSchema } from "./ids.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";

export const stepStatusSchema = z.enum(["ok", "error"]);
export type StepStatus = z.infer<typeof stepStatusSchema>;

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
});
export type Step = z.infer<typeof stepSchema>;
