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
 * Continues a paused session, retries the failed step of an `error` session, and continues a session that a limit stopped if
 * the options raise that limit.
 */
export const resume = defineAction({
  payload: z.object({
    reason: z.string().max(2000).optional(),
    /** Merged into the session's options. */
    options: requestedOptionsSchema.optional(),
  }),
  target: "existing",
  route: {
    verb: "resume",
    summary: "Continue a paused session, retry a failed step, or continue past a limit that the options raise",
    example: { options: { max_steps: 200 } },
    targets: SESSION_OR_AGENT,
  },
  takes_effect_at_once: true,
  prepare: enqueue,
  handle({ payload: { options } }, session, moniker) {
    const canResume = session.status === "paused" || session.status === "error" || isStoppedByLimit(session);
    if (!canResume) return { kind: "rejected", reason: `a session that is ${session.status} cannot be resumed` };
    const changed = options === undefined ? session : { ...session, options: { ...session.options, ...options } };
    const limit = isStoppedByLimit(session) ? reachedLimit(changed, Date.now()) : null;
    if (limit !== null)
      return {
        kind: "rejected",
        reason: `the session was stopped by ${limit}; resume it with options that raise ${limit}`,
      };
    const mayWait = moniker.kind === "reactive" || session.rests_since !== null;
    const isDue = startedAttempt(session)?.is_due === true || session.pause_reason?.kind === "breakpoint";
    const waits = mayWait && !isDue && session.pending_guidance.length === 0;
    const resumed = changeStatus(changed, waits ? "waiting" : "running");
    return { kind: "ok", session: { ...resumed, last_error: null, started_attempt: markOf(session) } };
  },
  handleEnded: (session) => (isStoppedByLimit(session) ? null : rejectEnded(session)),
});

/** Keeps the record of started attempts but resets the crash count. After a breakpoint, the held step may pass. */
function markOf(session: Session): StartedAttempt | null {
  const mark = startedAttempt(session);
  if (session.pause_reason?.kind === "breakpoint")
    return { ...mark, iteration: session.iteration + 1, attempts: 0, is_released: true };
  if (!mark) return null;
  const { outage_since: _, ...rest } = mark;
  return { ...rest, attempts: 0 };
}
