import type { Session, StartedAttempt } from "../domain/session.ts";
import { type Attempt, StepError } from "../monikers/moniker.ts";
import { noSpending, type Spending } from "./spending.ts";

/** How the previous attempt ended; null if there was none. */
type AttemptEnd = NonNullable<Attempt["after"]>;

/** What is known about earlier attempts at the next step that did not commit. */
export type EarlierAttempts = {
  /** Consecutive attempts by this runner that ended with an error. */
  failures: number;
  /** What they used; the next row includes it. */
  spent: Spending;
  /** All attempts started. */
  begun: number;
  ended: AttemptEnd | null;
  /** When the current outage began, if every attempt since has hit it, and how many of those this runner made. */
  outage_since: string | null;
  outage_tries: number;
  /** RUNNER-7. Whether the previous owner died while the session ran. */
  may_have_crashed: boolean;
};

/** What the row records about the next step. */
export function startedAttempt({ started_attempt, iteration }: Session): StartedAttempt | null {
  return started_attempt?.iteration === iteration + 1 ? started_attempt : null;
}

export function earlierAttempts(session: Session, after_crash: boolean): EarlierAttempts {
  const started = startedAttempt(session);
  const begun = started?.begun ?? started?.attempts ?? 0;
  return {
    failures: 0,
    spent: noSpending(),
    begun,
    ended: begun === 0 ? null : (started?.ended ?? "crash"),
    outage_since: started?.outage_since ?? null,
    outage_tries: 0,
    may_have_crashed: after_crash && session.status === "running" && !waitsOutOutage(session),
  };
}

export const noAttempts = (): EarlierAttempts => ({
  failures: 0,
  spent: noSpending(),
  begun: 0,
  ended: null,
  outage_since: null,
  outage_tries: 0,
  may_have_crashed: false,
});

/** Whether a session waits for an outage to end. Attempts during an outage are written before they begin, so none is running. */
export const waitsOutOutage = (session: Session): boolean =>
  session.retry_at !== null && startedAttempt(session)?.outage_since !== undefined;

/** How an attempt that threw ended. */
export const endOfFailure = (error: unknown): "error" | "timeout" =>
  error instanceof StepError && error.code === "timeout" ? "timeout" : "error";

/** The record for the next step after attempts ended here without a commit; `crashes` is the crash count to keep. */
export function attemptAfter(
  session: Session,
  { begun, ended, outage_since }: Pick<EarlierAttempts, "begun" | "ended" | "outage_since">,
  crashes = startedAttempt(session)?.attempts ?? 0,
): StartedAttempt {
  const { ended: _, outage_since: __, ...mark } = startedAttempt(session) ?? {};
  const end = ended === null || ended === "crash" ? {} : { ended };
  const outage = outage_since === null ? {} : { outage_since };
  return { ...mark, iteration: session.iteration + 1, attempts: crashes, begun, ...end, ...outage };
}

/** Whether a step marked `once` was running when its last owner was lost. */
export const wasRunning = ({ begun = 0, ended }: StartedAttempt): boolean => begun > 0 && ended === undefined;

/** The session as written before an attempt at a step marked `once` begins. */
export function beginOnce(session: Session, begun: number, step_started_at: string): Session {
  const { ended: _, ...mark } = startedAttempt(session) ?? { attempts: 0, once: true };
  const started_attempt = { ...mark, iteration: session.iteration + 1, begun };
  return { ...session, started_attempt, step_started_at, retry_at: null };
}

/** Takes `beginOnce` back for a step that did not start. */
export function notBegun(session: Session): Session {
  const started = startedAttempt(session);
  if (!started?.once) return session;
  const { begun: _, ...mark } = started;
  return { ...session, started_attempt: mark, step_started_at: null };
}
