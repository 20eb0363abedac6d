import { z } from "zod";
import type { JsonObject, JsonValue } from "../../domain/json.ts";
import { defineAction, enqueue, rejectEnded } from "../action-definition.ts";
import { addGuidance } from "../add-guidance.ts";

/** A message for a session. The payload itself is the guidance, unless it has a field `guidance`. */
export const input = defineAction({
  payload: z.looseObject({ mode: z.enum(["next", "now"]).optional() }),
  target: "existing",
  route: null,
  takes_effect_at_once: false,
  prepare: enqueue,
  handle({ action_id, payload: { mode, ...rest } }, session) {
    const guidance = "guidance" in rest ? (rest["guidance"] as JsonValue) : (rest as JsonObject);
    return addGuidance(session, action_id, guidance, mode);
  },
  handleEnded: rejectEnded,
});
