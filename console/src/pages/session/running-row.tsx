import type { Session } from "../../data/queries.ts";
import type { RunningNews } from "../../data/timeline.ts";
import { LiveDot } from "../../ui/status.tsx";
import { Age, Until } from "../../ui/time.tsx";

/** Default of `options.retry.max_attempts`. */
const DEFAULT_ATTEMPTS = 3;

/**
 * The step that runs or waits for its next attempt; null if there is none. The session's row tells only of steps that take longer
 * than a moment; one that streams is known by its text.
 */
export function runningIteration(session: Session, news: RunningNews | null): number | null {
  const isUnderWay = session.step_started_at !== null || (session.retry_at !== null && session.status === "running");
  return isUnderWay ? session.iteration + 1 : (news?.iteration ?? null);
}

/** Number of the current attempt. `begun` includes the running attempt of a `once` step, and of no other. */
function attemptNumber({ started_attempt, iteration }: Session): number {
  if (started_attempt?.iteration !== iteration + 1) return 1;
  const { begun = 0, once } = started_attempt;
  return once ? Math.max(1, begun) : begun + 1;
}

/** The current attempt and the maximum. */
export function attemptWords(session: Session): string {
  const attempt = attemptNumber(session);
  const most = session.options.retry?.max_attempts ?? DEFAULT_ATTEMPTS;
  // Interrupted attempts and outages do not count toward the maximum.
  return attempt > most ? `attempt ${attempt}` : `attempt ${attempt} of ${most}`;
}

type RunningRowProps = { session: Session; iteration: number; news: RunningNews | null };

/** The running step: elapsed time, attempt, streamed text and tools. */
export function RunningRow({ session, iteration, news }: RunningRowProps) {
  const { step_started_at, retry_at } = session;
  const isWaiting = step_started_at === null && retry_at !== null;
  return (
    <div
      data-testid="running-row"
      data-iteration={iteration}
      className="grid grid-cols-[44px_1fr] gap-x-3 border-b border-line bg-surface px-4 py-2"
    >
      <span className={`text-right font-mono tabular-nums ${isWaiting ? "text-warn" : "text-running"}`}>
        {iteration}
      </span>
      <span className="min-w-0">
        {news && news.text !== "" && (
          <span className="block whitespace-pre-wrap wrap-anywhere">
            {news.lacksBeginning && "…"}
            {news.text}
          </span>
        )}
        {(news === null || news.text === "") && <span className="text-muted">({session.next_step_token})</span>}
        {news && news.tools.length > 0 && <Tools names={news.tools} />}
        <span
          className={`mt-0.5 flex flex-wrap gap-x-3 text-[12px] tabular-nums ${isWaiting ? "text-warn" : "text-running"}`}
        >
          {isWaiting ? (
            <span>
              failed, retrying <Until at={retry_at} />
            </span>
          ) : (
            <span>
              <LiveDot /> running{" "}
              {step_started_at !== null && (
                <>
                  for <Age at={step_started_at} />
                </>
              )}
            </span>
          )}
          {(step_started_at !== null || isWaiting) && <span>{attemptWords(session)}</span>}
        </span>
      </span>
    </div>
  );
}

const SHOWN = 5;

/** The last tools used, newest last. */
export const Tools = ({ names, testId = "running-tools" }: { names: string[]; testId?: string }) => (
  <span className="mt-0.5 block font-mono text-[12px] text-muted wrap-anywhere" data-testid={testId}>
    {names.length > SHOWN && "… → "}
    {names.slice(-SHOWN).join(" → ")}
  </span>
);
