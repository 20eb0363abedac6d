import { z } from "zod";
import { jsonSchema } from "../../domain/json.ts";
import { defineAction, enqueue, rejectEnded, SESSION_OR_AGENT } from "../action-definition.ts";
import { addGuidance } from "../add-guidance.ts";

/** Guidance for a session, any JSON. */
export const interrupt = defineAction({
  payload: z.object({
    guidance: jsonSchema.refine((guidance) => guidance !== undefined, "is required"),
    mode: z.enum(["next", "now"]).optional(),
  }),
  target: "existing",
  route: {
    verb: "interrupt",
    summary: "Send guidance to the next step, or interrupt the running one with it",
    example: { guidance: "Look at PostgreSQL first.", user_id: "ann" },
    targets: SESSION_OR_AGENT,
  },
  takes_effect_at_once: false,
  prepare: enqueue,
  handle: ({ action_id, payload: { guidance, mode } }, session) => addGuidance(session, action_id, guidance, mode),
  handleEnded: rejectEnded,
});
