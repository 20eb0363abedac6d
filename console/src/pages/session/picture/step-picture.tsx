import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useActions } from "../../../data/actions.ts";
import { get } from "../../../data/api.ts";
import type { Session, SystemState } from "../../../data/queries.ts";
import { useSignal } from "../../../data/signal.ts";
import { Spans } from "../../../data/spans.ts";
import type { Timeline } from "../../../data/timeline.ts";
import { Failure } from "../../../ui/empty.tsx";
import { milliseconds, plural } from "../../../ui/format.ts";
import { span, Time, useNow } from "../../../ui/time.tsx";
import { type Mark, type Picture, pictureOf, type Rest } from "./picture.ts";
import { PictureCanvas } from "./picture-canvas.tsx";

type StepPictureProps = {
  session: Session;
  timeline: Timeline;
  selected: number | null;
  onSelect: (iteration: number) => void;
};

/** Everything that happened in a session on one time axis, and as text. */
export function StepPicture({ session, timeline, selected, onSelect }: StepPictureProps) {
  const { picture, isLoading, error } = usePicture(session, timeline);
  if (error) return <Failure error={error} />;
  return (
    <section
      aria-label="Picture of the timeline"
      data-testid="picture"
      className="shrink-0 border-b border-line bg-surface"
    >
      <PictureCanvas picture={picture} isLive={session.ended_at === null} selected={selected} onSelect={onSelect} />
      <InWords picture={picture} isLoading={isLoading} onSelect={onSelect} />
    </section>
  );
}

function usePicture(
  session: Session,
  timeline: Timeline,
): { picture: Picture; isLoading: boolean; error: Error | null } {
  const { session_id, iteration, status, updated_at, ended_at } = session;
  const [spans] = useState(() => new Spans(session_id));
  useEffect(() => {
    void timeline.opened.then(() => spans.open(iteration));
    return () => spans.close();
    // Opened once; later iterations are read as the session moves on.
    // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  }, [spans]);
  useEffect(() => {
    if (updated_at !== "") spans.renew();
  }, [spans, updated_at]);
  const { spans: rows, isLoading, error } = useSignal(spans.state);
  const { actions } = useActions(session_id);
  const { data: processStarts = NO_STARTS } = useProcessStarts();
  const time = useNow();
  const now = ended_at === null ? time : 0;
  const latest = useRef(session);
  latest.current = session;
  const picture = useMemo(
    () => pictureOf({ session: latest.current, spans: rows, actions, processStarts, now }),
    // A running session changes with every step: one picture a second is enough, and one when the status changes.
    // biome-ignore lint/correctness/useExhaustiveDependencies: see above
    [status, rows, actions, processStarts, now],
  );
  return { picture, isLoading, error };
}

const NO_STARTS: number[] = [];

/** When the processes that run now started. Polled, because a page may stay open over a restart. */
const useProcessStarts = () =>
  useQuery({
    queryKey: ["process-starts"],
    refetchInterval: 30_000,
    queryFn: async ({ signal }) => {
      const { runtimes, workers = [] } = await get<SystemState>("/api/system", {}, signal);
      return [...runtimes, ...workers].map(({ started_at }) => Date.parse(started_at));
    },
  });

const MOST_EVENTS = 300;
type Event = { at: number; iteration: number | null; words: string };

/** The same as text, for screen readers and as links to each event. */
function InWords({
  picture,
  isLoading,
  onSelect,
}: { picture: Picture; isLoading: boolean } & Pick<StepPictureProps, "onSelect">) {
  const events = useMemo(() => eventsOf(picture), [picture]);
  return (
    <details className="px-4 pb-2">
      <summary className="text-muted" data-testid="picture-summary">
        {summaryOf(picture)}
        {isLoading && " · loading more…"}
      </summary>
      {events.length === 0 && <p className="mt-1 text-muted">Only steps so far.</p>}
      <ol className="mt-1 max-h-48 overflow-y-auto" aria-label="What happened">
        {events.slice(-MOST_EVENTS).map(({ at, iteration, words }) => (
          <li key={`${at} ${words}`} className="flex gap-3 py-0.5">
            <span className="shrink-0 text-muted tabular-nums">
              <Time at={new Date(at).toISOString()} />
            </span>
            {iteration === null ? (
              <span className="min-w-0 wrap-anywhere">{words}</span>
            ) : (
              <button
                type="button"
                className="min-w-0 text-left text-accent wrap-anywhere hover:underline"
                onClick={() => onSelect(iteration)}
              >
                {words}
              </button>
            )}
          </li>
        ))}
      </ol>
    </details>
  );
}

/** Crashes and restarts have a mark with the same words. */
const hasMark = ({ kind }: Rest): boolean => kind === "crash" || kind === "restart";

function eventsOf({ rests, marks }: Picture): Event[] {
  const fromRests = rests
    .filter((rest) => !hasMark(rest))
    .map(({ start, iteration, words }) => ({ at: start, iteration, words }));
  return [...fromRests, ...marks].sort((a, b) => a.at - b.at);
}

function summaryOf({ bars, rests, marks, from, to }: Picture): string {
  const marked = (kind: Mark["kind"]) => marks.filter((mark) => mark.kind === kind).length;
  const parts: [number, string, string?][] = [
    [bars.filter(({ attempts }) => attempts > 1).length, "step retried", "steps retried"],
    [marked("failure"), "failure"],
    [rests.filter(({ kind }) => kind === "paused").length, "pause"],
    [marked("guidance"), "guidance message"],
    [marked("crash"), "crash", "crashes"],
    [marked("restart"), "restart"],
  ];
  return [
    `${plural(bars.length, "step")} in ${to - from < 1000 ? milliseconds(to - from) : span(to - from)}`,
    ...parts.filter(([number]) => number > 0).map(([number, one, many]) => plural(number, one, many)),
  ].join(" · ");
}
