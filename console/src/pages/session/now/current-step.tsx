import { useEffect, useRef } from "react";
import type { Session } from "../../../data/queries.ts";
import type { RunningNews } from "../../../data/timeline.ts";
import { Elapsed, Left } from "../../../ui/time.tsx";
import { attemptWords, runningIteration, Tools } from "../running-row.tsx";
import { headlineOf, type Tone } from "./headline.ts";
import { TimeBar } from "./limit-bar.tsx";

/** Default of `options.step_timeout_s`. */
const DEFAULT_STEP_TIMEOUT_S = 600;

const LOOKS: Readonly<Record<Tone, string>> = {
  running: "border-l-running",
  warn: "border-l-warn",
  bad: "border-l-bad",
  good: "border-l-good",
  muted: "border-l-muted",
};
const WORDS: Readonly<Record<Tone, string>> = {
  running: "text-running",
  warn: "text-warn",
  bad: "text-bad",
  good: "text-good",
  muted: "text-ink",
};

/** What the session does, for how long, and the text streamed so far. */
export function CurrentStep({ session, news }: { session: Session; news: RunningNews | null }) {
  const { tone, words, since, until } = headlineOf(session, news !== null);
  const iteration = runningIteration(session, news);
  const isUnderWay = iteration !== null && (session.status === "running" || session.status === "paused");
  const isOver = session.ended_at !== null;
  const own = news?.iteration === iteration ? news : null;
  return (
    <section aria-label="Now" className={`panel overflow-hidden border-l-4 ${LOOKS[tone]}`} data-testid="current-step">
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1 px-3.5 pt-3 pb-2.5">
        <p role="status" className={`text-[16px] font-semibold ${WORDS[tone]}`}>
          {words}
        </p>
        <p className="ml-auto text-[16px] text-ink tabular-nums">
          {since && <Elapsed at={since} />}
          {since && isOver && " ago"}
          {until && <Left at={until} />}
        </p>
        <p className="flex w-full flex-wrap gap-x-3 text-muted">
          {!isOver && (
            <span>
              {isUnderWay ? "step " : "next step "}
              <span className="font-mono text-ink wrap-anywhere">{session.next_step_token}</span>
            </span>
          )}
          {isUnderWay && <span className="tabular-nums">{attemptWords(session)}</span>}
          {session.options.model !== undefined && <span className="wrap-anywhere">{session.options.model}</span>}
        </p>
        {own && own.tools.length > 0 && <Tools names={own.tools} testId="now-tools" />}
      </div>
      {own && own.text !== "" && <Streamed text={own.text} lacksBeginning={own.lacksBeginning} />}
      {session.step_started_at !== null && (
        <div className="border-t border-line px-3.5 py-2">
          <TimeBar
            label="Time for this attempt"
            since={session.step_started_at}
            seconds={session.options.step_timeout_s ?? DEFAULT_STEP_TIMEOUT_S}
          />
        </div>
      )}
    </section>
  );
}

/** Streamed text, scrolled to its end. */
function Streamed({ text, lacksBeginning }: { text: string; lacksBeginning: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element && text !== "") element.scrollTop = element.scrollHeight;
  }, [text]);
  return (
    <div
      ref={box}
      role="region"
      aria-label="Text so far"
      tabIndex={0}
      data-testid="streamed"
      className="max-h-64 overflow-y-auto border-t border-line bg-sunken px-3.5 py-2.5 whitespace-pre-wrap -outline-offset-2 wrap-anywhere"
    >
      {lacksBeginning && "…"}
      {text}
      <span aria-hidden className="pulse ml-0.5 inline-block h-3.5 w-1.5 translate-y-0.5 bg-running" />
    </div>
  );
}
