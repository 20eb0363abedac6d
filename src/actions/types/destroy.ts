import { z } from "zod";
import { changeStatus, isStoppedByLimit, mayChange } from "../../domain/session.ts";
import { defineAction, enqueue, rejectEnded, SESSION_OR_AGENT } from "../action-definition.ts";

/** From here on the session is `stopping`, also after a crash; its runner ends it as `stopped`. */
export const destroy = defineAction({
  payload: z.object({ reason: z.string().max(2000).optional() }),
  target: "existing",
  route: {
    verb: "destroy",
    summary: "End the session for good",
    example: { user_id: "ann" },
    targets: SESSION_OR_AGENT,
  },
  takes_effect_at_once: true,
  prepare: enqueue,
  handle(_action, session) {
    if (session.status === "stopping") return { kind: "rejected", reason: "the session is stopping already" };
    // It could have been resumed; from here on it cannot.
    if (isStoppedByLimit(session)) return { kind: "ok", session: changeStatus(session, "stopped", "destroyed") };
    if (!mayChange(session.status, "stopping"))
      return { kind: "rejected", reason: `the session is ${session.status} already` };
    return { kind: "ok", session: changeStatus(session, "stopping", "destroyed"), effect: "destroy" };
  },
  handleEnded: (session) => (isStoppedByLimit(session) ? null : rejectEnded(session)),
});
