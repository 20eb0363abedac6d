import type { JsonObject } from "../../domain/json.ts";
import { changeStatus, isStoppedByLimit, type Session, type SessionOptions } from "../../domain/session.ts";
import { reachedLimit } from "../../sessions/limits.ts";
import type { Handler } from "../outcome.ts";

/**
 * A paused session goes on where it was; one that failed tries the failed step again; one that a limit stopped goes on
 * where the options that come along lift the limit.
 */
export const resume: Handler = (action, session, moniker) => {
  const goesOn = session.status === "paused" || session.status === "error" || isStoppedByLimit(session);
  if (!goesOn) return { kind: "rejected", reason: `a session that is ${session.status} cannot be resumed` };
  const changed = withOptions(session, action.payload);
  const limit = isStoppedByLimit(session) ? reachedLimit(changed, Date.now()) : null;
  if (limit !== null)
    return {
      kind: "rejected",
      reason: `the session is stopped by ${limit}; give options with a higher ${limit} to let it go on`,
    };
  const waits = moniker.kind === "reactive" && session.pending_guidance.length === 0;
  const goingOn = changeStatus(changed, waits ? "waiting" : "running");
  return { kind: "ok", session: { ...goingOn, last_error: null, started_attempt: null } };
};

const withOptions = (session: Session, { options }: JsonObject): Session =>
  options === undefined ? session : { ...session, options: { ...session.options, ...(options as SessionOptions) } };
