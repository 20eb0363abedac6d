import { z } from "zod";
import { actionTypeSchema } from "./action-type.ts";
import { idSchema, newId, now, timeSchema } from "./ids.ts";
import { jsonObjectSchema } from "./json.ts";
import { receiptSchema } from "./receipt.ts";

const outcomeSchema = z.enum(["ok", "rejected", "failed"]);

/** A row of the table `queue`: one request, from submission to its end. */
export const actionSchema = z.object({
  action_id: idSchema,
  created_at: timeSchema,
  action_type: actionTypeSchema,
  agent_id: idSchema.nullable(),
  session_id: idSchema,
  payload: jsonObjectSchema,
  metadata: jsonObjectSchema,
  urgency: z.int().min(0).max(9),
  processed: z.boolean(),
  processed_at: timeSchema.nullable(),
  outcome: outcomeSchema.nullable(),
  error: z.string().nullable(),
  attempts: z.int().min(0),
  /** Earliest time to claim the action; null: at once. Set while a failed attempt waits for its retry. */
  run_at: timeSchema.nullable(),
  receipt: receiptSchema,
  consumed_iteration: z.int().min(0).nullable(),
});
export type Action = z.infer<typeof actionSchema>;

export type ActionRequest = Pick<Action, "action_type" | "agent_id" | "session_id" | "payload"> &
  Partial<Pick<Action, "metadata" | "urgency">>;

/** A request as it enters the queue. */
export function newAction(request: ActionRequest, action_id = newId()): Action {
  return {
    action_id,
    created_at: now(),
    metadata: {},
    urgency: 0,
    ...request,
    processed: false,
    processed_at: null,
    outcome: null,
    error: null,
    attempts: 0,
    run_at: null,
    receipt: "accepted",
    consumed_iteration: null,
  };
}

/** The order within a session: urgency first, then arrival. */
export const byUrgencyThenArrival = (a: Action, b: Action): number =>
  b.urgency - a.urgency || compareText(a.created_at, b.created_at) || compareText(a.action_id, b.action_id);

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
