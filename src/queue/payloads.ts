import { z } from "zod";
import type { ActionType } from "../domain/action.ts";
import { idSchema } from "../domain/ids.ts";
import { type JsonObject, type JsonValue, jsonObjectSchema, jsonSchema } from "../domain/json.ts";
import { sessionOptionsSchema } from "../domain/session.ts";

const modeSchema = z.enum(["next", "now"]);

export const createPayloadSchema = z.object({
  moniker: z.string().min(1).max(200).optional(),
  params: jsonObjectSchema.optional(),
  options: sessionOptionsSchema.optional(),
  conversation_id: idSchema.optional(),
});

export const controlPayloadSchema = z.object({ reason: z.string().max(2000).optional() });

/** Options replace the session's own, one by one: a limit that stopped it can be lifted this way. */
export const resumePayloadSchema = controlPayloadSchema.extend({ options: sessionOptionsSchema.optional() });

export const interruptPayloadSchema = z.object({
  guidance: jsonSchema.refine((guidance) => guidance !== undefined, "is required"),
  mode: modeSchema.optional(),
});

/** A message for the session: the payload itself is the guidance, unless it names one. */
const inputPayloadSchema = z.looseObject({ mode: modeSchema.optional() });

export const forkPayloadSchema = z.object({
  iteration: z.int().min(0),
  /** The new session's id; made up where it is absent. */
  session_id: idSchema.optional(),
  guidance: jsonSchema.optional(),
});

export const PAYLOADS = {
  agent_create: createPayloadSchema,
  agent_pause: controlPayloadSchema,
  agent_resume: resumePayloadSchema,
  agent_destroy: controlPayloadSchema,
  agent_interrupt: interruptPayloadSchema,
  agent_input: inputPayloadSchema,
  agent_fork: forkPayloadSchema,
} as const satisfies Record<ActionType, z.ZodType>;

/** What a person said and whether it can wait, from the payload of `agent_interrupt` or `agent_input`. */
export function guidanceOf(payload: JsonObject): { guidance: JsonValue; mode: "next" | "now" } {
  const { mode, ...rest } = payload;
  return {
    guidance: "guidance" in rest ? rest["guidance"] : rest,
    mode: mode === "now" ? "now" : "next",
  };
}
