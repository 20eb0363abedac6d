import { z } from "zod";
import {
  changeStatus,
  isStoppedByLimit,
  requestedOptionsSchema,
  type Session,
  type StartedAttempt,
} from "../../domain/session.ts";
import { startedAttempt } from "../../sessions/attempts.ts";
import { reachedLimit } from "../../sessions/limits.ts";
import { defineAction, enqueue, rejectEnded, SESSION_OR_AGENT } from "../action-definition.ts";

/**
 * A paused session goes on where it was, one that failed tries the failed step again, and one that a limit stopped goes on
 * if the options that come along lift the limit.
 */
export const resume = defineAction({
  payload: z.object({
    reason: z.string().max(2000).optional(),
    /** They replace the session's own, one by one. */
    options: requestedOptionsSchema.optional(),
  }),
  target: "existing",
  route: {
    verb: "resume",
    summary: "Go on, try a failed step again, or go on past a limit that the given options lift",
    example: { options: { max_steps: 200 } },
    targets: SESSION_OR_AGENT,
  },
  takes_effect_at_once: true,
  prepare: enqueue,
  handle({ payload: { options } }, session, moniker) {
    const goesOn = session.status === "paused" || session.status === "error" || isStoppedByLimit(session);
    if (!goesOn) return { kind: "rejected", reason: `a session that is ${session.status} cannot be resumed` };
    const changed = options === undefined ? session : { ...session, options: { ...session.options, ...options } };
    const limit = isStoppedByLimit(session) ? reachedLimit(changed, Date.now()) : null;
    if (limit !== null)
      return {
        kind: "rejected",
        reason: `the session is stopped by ${limit}; give options with a higher ${limit} to let it go on`,
      };
    const mayWait = moniker.kind === "reactive" || session.rests_since !== null;
    const isDue = startedAttempt(session)?.is_due === true || session.pause_reason?.kind === "breakpoint";
    const waits = mayWait && !isDue && session.pending_guidance.length === 0;
    const goingOn = changeStatus(changed, waits ? "waiting" : "running");
    return { kind: "ok", session: { ...goingOn, last_error: null, started_attempt: markOf(session) } };
  },
  handleEnded: (session) => (isStoppedByLimit(session) ? null : rejectEnded(session)),
});

/** What was begun stays known; only crashes no longer count. A breakpoint lets this step pass. */
function markOf(session: Session): StartedAttempt | null {
  const mark = startedAttempt(session);
  if (session.pause_reason?.kind === "breakpoint")
    return { ...mark, iteration: session.iteration + 1, attempts: 0, is_released: true };
  if (!mark) return null;
  const { outage_since: _, ...rest } = mark;
  return { ...rest, attempts: 0 };
}
