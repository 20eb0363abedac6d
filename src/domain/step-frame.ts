import { z } from "zod";
import { jsonObjectSchema, jsonSchema } from "./json.ts";

/** StepFrame-v0: all that a moniker knows of the past, and all that it leaves for the future. */
const frameInSchema = z.object({
  step: z.string(),
  state: jsonObjectSchema,
  guidance: z.array(jsonSchema).optional(),
});
export type FrameIn = z.infer<typeof frameInSchema>;

export const frameOutSchema = z.object({
  step: z.string(),
  next_step: z.string(),
  state: jsonObjectSchema,
  text: z.string().optional(),
  data: jsonSchema.optional(),
  done: z.boolean(),
  notes: z.string().optional(),
});
export type FrameOut = z.infer<typeof frameOutSchema>;
