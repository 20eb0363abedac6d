import { z } from "zod";
import { actionTypeSchema } from "./action-type.ts";
import { idSchema } from "./ids.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";
import { askSchema } from "./question.ts";

/** StepFrame-v0: everything a moniker knows about the past, and everything it leaves for the next step. */
const frameInSchema = z.object({
  step: z.string(),
  state: jsonObjectSchema,
  guidance: z.array(jsonSchema).optional(),
});
export type FrameIn = z.infer<typeof frameInSchema>;

/** What a frame may say about the next step. */
export const directivesSchema = z.object({
  /** Rest until guidance arrives or the time is reached, whichever comes first. */
  wait: z.object({ until: z.iso.datetime({ offset: true }).optional() }).optional(),
  /** Rest in the same way, and ask people a question. */
  ask: askSchema.optional(),
  /** The next step must not run twice without a person's consent: its start is written before it runs. */
  once: z.boolean().optional(),
  /** The next step of a reactive moniker runs at once, without new guidance. */
  go_on: z.boolean().optional(),
});
export type Directives = z.infer<typeof directivesSchema>;

/** What a frame says about the next step; null if nothing. */
export function directivesOf({ wait, ask, once, go_on }: Directives): Directives | null {
  if (!wait && !ask && !once && !go_on) return null;
  return { ...(wait && { wait }), ...(ask && { ask }), ...(once && { once }), ...(go_on && { go_on }) };
}

/** A request that a step makes; it is committed together with the step. */
const frameActionSchema = z.object({
  action_type: actionTypeSchema,
  agent_id: idSchema.optional(),
  session_id: idSchema.optional(),
  moniker: z.string().optional(),
  params: jsonObjectSchema.optional(),
  options: jsonObjectSchema.optional(),
  conversation_id: idSchema.optional(),
  payload: jsonObjectSchema.optional(),
  metadata: jsonObjectSchema.optional(),
  urgency: z.int().min(0).max(9).optional(),
});
export type FrameAction = z.infer<typeof frameActionSchema>;
const MOST_ACTIONS = 1000;

/** Most frames have no directives and no actions; this schema is faster to check. */
export const plainFrameSchema = z.object({
  step: z.string(),
  next_step: z.string(),
  state: jsonObjectSchema,
  text: z.string().optional(),
  data: jsonSchema.optional(),
  done: z.boolean(),
  notes: z.string().optional(),
});

export const frameOutSchema = plainFrameSchema.extend({
  ...directivesSchema.shape,
  actions: z.array(frameActionSchema).max(MOST_ACTIONS).optional(),
});
export type FrameOut = z.infer<typeof frameOutSchema>;
