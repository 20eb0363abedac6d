import { changeStatus, type Session } from "../domain/session.ts";
import { startedAttempt, wasUnderWay } from "./attempts.ts";

/** A step that was under way at so many crashes in a row is held. */
const MOST_CRASHES = 3;

/** How long a suspect runs alone, in milliseconds. One that lives longer is not the one that kills at once. */
export const PROBATION_MS = 10_000;

/** A process that only lost its connection to the store is back within so many milliseconds. */
export const COMEBACK_MS = 1_500;

/**
 * What becomes of steps that were under way when their owner died.
 *
 * CRASH-1  Normally the start of a step is not written, so the first crash proves nothing. From then on the start is marked in
 *          the session's row, and a mark that outlives a crash tells that the step was under way.
 * CRASH-2  Suspects, those with such a mark, run one at a time: the next crash then proves which of them it was.
 * CRASH-3  At the third crash in a row the session is held until a person resumes it.
 * CRASH-4  An owner that was taken for dead and came back did not crash. So a suspect waits a while before its crash is counted.
 * CRASH-6  An attempt that met an outage ended in order, so crashes before it and after it are not in a row: a process that is
 *          killed now and then while a provider is down holds nobody.
 * CRASH-5  The start of a step marked `once` is always written, so its row tells whether it was under way.
 */
export function afterCrash(session: Session): Session {
  const started = startedAttempt(session);
  // CRASH-5.
  if (started?.once && !wasUnderWay(started)) return session;
  const attempts = (started?.attempts ?? 0) + 1;
  const begun = (started?.begun ?? attempts - 1) + (started?.once ? 0 : 1);
  const { ended: _, ...mark } = started ?? {};
  const counted = { ...session, started_attempt: { ...mark, iteration: session.iteration + 1, attempts, begun } };
  if (attempts < MOST_CRASHES) return counted;
  const step_token = session.next_step_token;
  return {
    ...changeStatus(counted, "paused"),
    pause_reason: { kind: "crashes", step_token, attempts },
    last_error: `held: the process died ${attempts} times in a row while step ${step_token} ran; resume tries it again`,
  };
}

/** CRASH-2. */
export const isSuspect = (session: Session): boolean => (startedAttempt(session)?.attempts ?? 0) > 0;
