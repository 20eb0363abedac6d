import { useEffect, useRef } from "react";
import { VList, type VListHandle } from "virtua";
import type { Session } from "../../data/queries.ts";
import { useSignal } from "../../data/signal.ts";
import type { Timeline } from "../../data/timeline.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Failure } from "../../ui/empty.tsx";
import { count, plural } from "../../ui/format.ts";
import { RunningRow, runningIteration } from "./running-row.tsx";
import { StepRow } from "./step-row.tsx";

type TimelineViewProps = {
  timeline: Timeline;
  session: Session;
  selected: number | null;
  onSelect: (iteration: number) => void;
  onNewest: () => void;
};

const NEAR_END = 60;
const NEAR_START = 400;

export function TimelineView({ timeline, session, selected, onSelect, onNewest }: TimelineViewProps) {
  const { steps, running, isLive, isLoading, isGrowingUp, error } = useSignal(timeline.state);
  const list = useRef<VListHandle>(null);
  const isAtEnd = useRef(selected === null);
  const under = runningIteration(session, running);
  // The step's row and the session's come one after the other.
  const isRunning =
    isLive && under !== null && under > (steps.findLast(({ status }) => status === "ok")?.iteration ?? -1);
  const rows = steps.length + (isRunning ? 1 : 0);

  useEffect(() => {
    if (isAtEnd.current && rows > 0) list.current?.scrollToIndex(rows - 1, { align: "end" });
  }, [rows, running?.text.length]);

  useEffect(() => {
    const index = selected === null ? -1 : timeline.state.value.steps.findIndex((step) => step.iteration === selected);
    if (index < 0) return;
    isAtEnd.current = false;
    list.current?.scrollToIndex(index, { align: "nearest" });
  }, [selected, timeline, isLoading]);

  const look = (offset: number) => {
    const handle = list.current;
    if (!handle) return;
    const left = handle.scrollSize - offset - handle.viewportSize;
    isAtEnd.current = left < NEAR_END;
    if (offset < NEAR_START) void timeline.earlier();
    if (left < NEAR_START) void timeline.later();
  };
  return (
    <>
      <ListBar timeline={timeline} session={session} onNewest={onNewest} />
      {error && <Failure error={error} />}
      {rows === 0 && !isLoading ? (
        <Empty title="No step yet">
          {session.status === "waiting"
            ? "It waits to be told something: write to it below."
            : "The first one is on its way."}
        </Empty>
      ) : (
        <VList
          ref={list}
          shift={isGrowingUp}
          className="flex-1"
          onScroll={look}
          aria-label="Steps"
          role="region"
          tabIndex={0}
        >
          {steps.map((step) => (
            <StepRow
              key={step.id}
              step={step}
              isSelected={step.iteration === selected}
              onSelect={onSelect}
              session={session}
            />
          ))}
          {isRunning ? (
            <RunningRow
              key="running"
              session={session}
              iteration={under}
              news={running?.iteration === under ? running : null}
            />
          ) : null}
        </VList>
      )}
    </>
  );
}

type ListBarProps = Pick<TimelineViewProps, "timeline" | "session" | "onNewest">;

/** Holds the list still, says what waits meanwhile, and leads to its end. */
function ListBar({ timeline, session, onNewest }: ListBarProps) {
  const { held, isPaused, isLive, isLoading } = useSignal(timeline.state);
  return (
    <div className="flex items-center gap-3 border-b border-line bg-canvas px-4 py-1.5">
      <label className="flex items-center gap-2">
        <input
          type="checkbox"
          role="switch"
          checked={isPaused}
          onChange={(event) => timeline.pauseUpdates(event.target.checked)}
        />
        Freeze the list
      </label>
      {isPaused && held > 0 && (
        <span className="text-warn" data-testid="held">
          {plural(held, "new row")} waiting
        </span>
      )}
      {!isLive && !isLoading && (
        <Button look="ghost" className="ml-auto h-6" onClick={onNewest}>
          Jump to the newest of {count(session.iteration + 1)}
        </Button>
      )}
    </div>
  );
}
