import { z } from "zod";
import { actionTypeSchema } from "./action-type.ts";
import { idSchema } from "./ids.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";
import { askSchema } from "./question.ts";

/** StepFrame-v0: all that a moniker knows of the past, and all that it leaves for the future. */
const frameInSchema = z.object({
  step: z.string(),
  state: jsonObjectSchema,
  guidance: z.array(jsonSchema).optional(),
});
export type FrameIn = z.infer<typeof frameInSchema>;

/** What a frame may say about the step that comes next. */
export const directivesSchema = z.object({
  /** Rest until guidance arrives or the time comes, whichever is first. */
  wait: z.object({ until: z.iso.datetime({ offset: true }).optional() }).optional(),
  /** Rest likewise, and put a question before people. */
  ask: askSchema.optional(),
  /** The next step must not run twice unasked: its start is written before it runs. */
  once: z.boolean().optional(),
  /** The next step of a reactive moniker runs at once, though nobody said anything. */
  go_on: z.boolean().optional(),
});
export type Directives = z.infer<typeof directivesSchema>;

/** What a frame says about the next step; null where it says nothing. */
export function directivesOf({ wait, ask, once, go_on }: Directives): Directives | null {
  if (!wait && !ask && !once && !go_on) return null;
  return { ...(wait && { wait }), ...(ask && { ask }), ...(once && { once }), ...(go_on && { go_on }) };
}

/** A request that a step makes; it is written together with the step. */
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

/** A frame that says nothing about the next step and asks for nothing, as most do: it takes less to check. */
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
