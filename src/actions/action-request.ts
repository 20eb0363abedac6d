import { z } from "zod";
import { type Action, newAction } from "../domain/action.ts";
import { actionTypeSchema } from "../domain/action-type.ts";
import { idSchema } from "../domain/ids.ts";
import { jsonObjectSchema } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";

export const submitSchema = z.object({
  action_type: actionTypeSchema,
  agent_id: idSchema.optional(),
  session_id: idSchema.optional(),
  payload: jsonObjectSchema.optional(),
  metadata: jsonObjectSchema.optional(),
  urgency: z.int().min(0).max(9).optional(),
});
export type SubmitRequest = z.infer<typeof submitSchema>;

/** A request whose payload matches its type's schema and has no undefined fields. */
export type CheckedRequest<Payload = object> = Omit<SubmitRequest, "payload"> & { payload: Payload };

export type Target = Pick<Session, "agent_id" | "session_id">;

/** A request's row as it enters its target's queue. */
export function actionOf(
  { action_type, payload, metadata, urgency }: CheckedRequest,
  { agent_id, session_id }: Target,
  action_id?: string,
): Action {
  return newAction(
    {
      action_type,
      agent_id,
      session_id,
      payload: payload as Action["payload"],
      metadata: metadata ?? {},
      urgency: urgency ?? 0,
    },
    action_id,
  );
}
