import { z } from "zod";
import { changeStatus, mayChange } from "../../domain/session.ts";
import { defineAction, enqueue, rejectEnded, SESSION_OR_AGENT } from "../action-definition.ts";

export const pause = defineAction({
  payload: z.object({ reason: z.string().max(2000).optional() }),
  target: "existing",
  route: {
    verb: "pause",
    summary: "Pause the session; a running step may finish, no further one starts",
    example: { reason: "I want to look at it first", user_id: "ann" },
    targets: SESSION_OR_AGENT,
  },
  takes_effect_at_once: true,
  prepare: enqueue,
  handle({ payload: { reason }, metadata: { user_id } }, session) {
    if (session.status === "paused") return { kind: "rejected", reason: "the session is already paused" };
    if (!mayChange(session.status, "paused"))
      return { kind: "rejected", reason: `a session that is ${session.status} cannot be paused` };
    const pause_reason = {
      kind: "person" as const,
      ...(typeof user_id === "string" ? { user_id } : {}),
      ...(typeof reason === "string" ? { reason } : {}),
    };
    return { kind: "ok", session: { ...changeStatus(session, "paused"), pause_reason } };
  },
  handleEnded: rejectEnded,
});
