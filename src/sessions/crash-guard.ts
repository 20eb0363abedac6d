import { changeStatus, type Session } from "../domain/session.ts";
import { startedAttempt, wasRunning } from "./attempts.ts";

/** After this many crashes in a row a step is held. */
const MOST_CRASHES = 3;

/** How long a suspect runs alone, in milliseconds. A step that survives longer is not one that kills the process at once. */
export const PROBATION_MS = 10_000;

/** A process that only lost its connection to the store is back within this time, in milliseconds. */
export const RECONNECT_MS = 1_500;

/**
 * What happens to steps that were running when their owner died.
 *
 * CRASH-1  A step's start is normally not written, so the first crash proves nothing. After it, starts are marked in the
 *          session's row; a mark that survives a crash shows that the step was running.
 * CRASH-2  Suspects, the steps with such a mark, run one at a time, so that the next crash identifies the culprit.
 * CRASH-3  After the third crash in a row the session is held until a person resumes it.
 * CRASH-4  An owner that seemed dead and came back did not crash. A suspect therefore waits a while before its crash is
 *          counted.
 * CRASH-5  The start of a step marked `once` is always written, so its row says whether it was running.
 * CRASH-6  An attempt that hit an outage ended normally and breaks a row of crashes: a process that is killed now and then
 *          while a provider is down holds no session.
 */
export function afterCrash(session: Session): Session {
  const started = startedAttempt(session);
  // CRASH-5.
  if (started?.once && !wasRunning(started)) return session;
  const attempts = (started?.attempts ?? 0) + 1;
  const begun = (started?.begun ?? attempts - 1) + (started?.once ? 0 : 1);
  const { ended: _, ...mark } = started ?? {};
  const counted = { ...session, started_attempt: { ...mark, iteration: session.iteration + 1, attempts, begun } };
  if (attempts < MOST_CRASHES) return counted;
  const step_token = session.next_step_token;
  return {
    ...changeStatus(counted, "paused"),
    pause_reason: { kind: "crashes", step_token, attempts },
    last_error: `held: the process died ${attempts} times in a row while step ${step_token} ran; resume to retry it`,
  };
}

/** CRASH-2. */
export const isSuspect = (session: Session): boolean => (startedAttempt(session)?.attempts ?? 0) > 0;
