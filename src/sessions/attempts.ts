import type { Session, StartedAttempt } from "../domain/session.ts";
import { type Attempt, StepError } from "../monikers/moniker.ts";
import { nothingSpent, type Spending } from "./spending.ts";

/** How the attempt before ended; null where there was none. */
type AttemptEnd = NonNullable<Attempt["after"]>;

/** What is known of attempts at the next step that came to nothing. */
export type EarlierAttempts = {
  /** Those that ended with an error here, in a row. */
  failures: number;
  /** What they used; the next row counts it. */
  spent: Spending;
  /** All of them. */
  begun: number;
  ended: AttemptEnd | null;
  /** Since when they met an outage, one after the other, and how many of them did here. */
  outage_since: string | null;
  outage_tries: number;
  /** RUNNER-7. Whether the last owner died while the session ran. */
  may_have_crashed: boolean;
};

/** What the row says of the next step. */
export function startedAttempt({ started_attempt, iteration }: Session): StartedAttempt | null {
  return started_attempt?.iteration === iteration + 1 ? started_attempt : null;
}

export function earlierAttempts(session: Session, after_crash: boolean): EarlierAttempts {
  const started = startedAttempt(session);
  const begun = started?.begun ?? started?.attempts ?? 0;
  return {
    failures: 0,
    spent: nothingSpent(),
    begun,
    ended: begun === 0 ? null : (started?.ended ?? "crash"),
    outage_since: started?.outage_since ?? null,
    outage_tries: 0,
    may_have_crashed: after_crash && session.status === "running" && !isWaitingOut(session),
  };
}

export const noAttempts = (): EarlierAttempts => ({
  failures: 0,
  spent: nothingSpent(),
  begun: 0,
  ended: null,
  outage_since: null,
  outage_tries: 0,
  may_have_crashed: false,
});

/** Whether a session waits for the end of an outage. Attempts during one are written before they begin, so none is under way. */
export const isWaitingOut = (session: Session): boolean =>
  session.retry_at !== null && startedAttempt(session)?.outage_since !== undefined;

/** How an attempt ended that threw. */
export const endOfFailure = (error: unknown): "error" | "timeout" =>
  error instanceof StepError && error.code === "timeout" ? "timeout" : "error";

/** The mark of the next step once attempts have ended here without a commit; `crashes` are those that count on. */
export function attemptAfter(
  session: Session,
  { begun, ended, outage_since }: Pick<EarlierAttempts, "begun" | "ended" | "outage_since">,
  crashes = startedAttempt(session)?.attempts ?? 0,
): StartedAttempt {
  const { ended: _, outage_since: __, ...mark } = startedAttempt(session) ?? {};
  const known = ended === null || ended === "crash" ? {} : { ended };
  const outage = outage_since === null ? {} : { outage_since };
  return { ...mark, iteration: session.iteration + 1, attempts: crashes, begun, ...known, ...outage };
}

/** Whether a step marked `once` was under way when its last owner was lost. */
export const wasUnderWay = ({ begun = 0, ended }: StartedAttempt): boolean => begun > 0 && ended === undefined;

/** The session as it is written before an attempt at a step marked `once` begins. */
export function beginOnce(session: Session, begun: number, step_started_at: string): Session {
  const { ended: _, ...mark } = startedAttempt(session) ?? { attempts: 0, once: true };
  const started_attempt = { ...mark, iteration: session.iteration + 1, begun };
  return { ...session, started_attempt, step_started_at, retry_at: null };
}
