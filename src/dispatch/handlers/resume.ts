import { withStatus } from "../../sessions/step-commit.ts";
import type { Handler } from "../outcome.ts";

/** A paused session goes on where it was; one that failed tries the failed step again. */
export const resume: Handler = (_action, session, moniker) => {
  if (session.status !== "paused" && session.status !== "error")
    return { kind: "rejected", reason: `a session that is ${session.status} cannot be resumed` };
  const waits = moniker.kind === "reactive" && session.pending_guidance.length === 0;
  return { kind: "ok", session: { ...withStatus(session, waits ? "waiting" : "running", null), last_error: null } };
};
