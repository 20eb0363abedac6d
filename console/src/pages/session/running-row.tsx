import type { Session } from "../../data/queries.ts";
import type { RunningNews } from "../../data/timeline.ts";
import { Age, Until } from "../../ui/time.tsx";

/** As many attempts as a step has where the session's options say nothing else. */
const DEFAULT_ATTEMPTS = 3;

/**
 * Whether a step is under way or waits for its next attempt, and which. The row says so only of a step that takes longer than a
 * moment; one that streams is known by its text.
 */
export function runningIteration(session: Session, news: RunningNews | null): number | null {
  const isUnderWay = session.step_started_at !== null || (session.retry_at !== null && session.status === "running");
  return isUnderWay ? session.iteration + 1 : (news?.iteration ?? null);
}

/** Which attempt at the next step this is. The mark of a step that must not run twice counts the one under way, any other does not. */
function attemptNumber({ started_attempt, iteration }: Session): number {
  if (started_attempt?.iteration !== iteration + 1) return 1;
  const { begun = 0, once } = started_attempt;
  return once ? Math.max(1, begun) : begun + 1;
}

function attemptWords(session: Session): string {
  const attempt = attemptNumber(session);
  const most = session.options.retry?.max_attempts ?? DEFAULT_ATTEMPTS;
  // Attempts that a person cut short or that met an outage use up none.
  return attempt > most ? `attempt ${attempt}` : `attempt ${attempt} of ${most}`;
}

type RunningRowProps = { session: Session; iteration: number; news: RunningNews | null };

/** The step that runs now: since when, which attempt, what it says and which tools it uses. */
export function RunningRow({ session, iteration, news }: RunningRowProps) {
  const { step_started_at, retry_at } = session;
  const isWaiting = step_started_at === null && retry_at !== null;
  return (
    <div
      data-testid="running-row"
      data-iteration={iteration}
      className="grid grid-cols-[44px_1fr] gap-x-3 border-b border-line bg-surface px-4 py-2"
    >
      <span className={`text-right font-mono tabular-nums ${isWaiting ? "text-warn" : "pulse text-running"}`}>
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
              failed, tried again <Until at={retry_at} />
            </span>
          ) : (
            <span>
              running{" "}
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

/** The tools that were used last, the newest at the end. */
const Tools = ({ names }: { names: string[] }) => (
  <span className="mt-0.5 block font-mono text-[12px] text-muted wrap-anywhere" data-testid="running-tools">
    {names.length > SHOWN && "… → "}
    {names.slice(-SHOWN).join(" → ")}
  </span>
);
