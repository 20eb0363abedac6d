import { z } from "zod";
import { changeStatus, isStoppedByLimit, mayChange } from "../../domain/session.ts";
import { defineAction, enqueue, rejectEnded, SESSION_OR_AGENT } from "../action-definition.ts";

/** The session becomes `stopping`, which survives a crash; its runner ends it as `stopped`. */
export const destroy = defineAction({
  payload: z.object({ reason: z.string().max(2000).optional() }),
  target: "existing",
  route: {
    verb: "destroy",
    summary: "End the session permanently",
    example: { user_id: "ann" },
    targets: SESSION_OR_AGENT,
  },
  takes_effect_at_once: true,
  prepare: enqueue,
  handle(_action, session) {
    if (session.status === "stopping") return { kind: "rejected", reason: "the session is already stopping" };
    // From now on it cannot be resumed.
    if (isStoppedByLimit(session)) return { kind: "ok", session: changeStatus(session, "stopped", "destroyed") };
    if (!mayChange(session.status, "stopping"))
      return { kind: "rejected", reason: `the session is already ${session.status}` };
    return { kind: "ok", session: changeStatus(session, "stopping", "destroyed"), effect: "destroy" };
  },
  handleEnded: (session) => (isStoppedByLimit(session) ? null : rejectEnded(session)),
});
