import { useEffect, useMemo, useRef } from "react";
import { VList, type VListHandle } from "virtua";
import type { Session, SlimStep } from "../../data/queries.ts";
import { useSignal } from "../../data/signal.ts";
import type { Timeline } from "../../data/timeline.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Failure } from "../../ui/empty.tsx";
import { count, plural } from "../../ui/format.ts";
import { useFollowedEnd } from "../../ui/use-followed-end.ts";
import { RunningRow, runningIteration } from "./running-row.tsx";
import { StepRow } from "./step-row.tsx";

type TimelineViewProps = {
  timeline: Timeline;
  session: Session;
  selected: number | null;
  onSelect: (iteration: number) => void;
  onNewest: () => void;
};

/** List item of the running step. */
const RUNNING = "running" as const;
const NEAR_START = 400;

export function TimelineView({ timeline, session, selected, onSelect, onNewest }: TimelineViewProps) {
  const { steps, running, isLive, isLoading, isGrowingUp, error } = useSignal(timeline.state);
  const list = useRef<VListHandle>(null);
  const { frame, isFollowing, scrolledTo } = useFollowedEnd(selected === null);
  const under = runningIteration(session, running);
  // The step's row and the session's update arrive one after the other.
  const isRunning =
    isLive && under !== null && under > (steps.findLast(({ status }) => status === "ok")?.iteration ?? -1);
  const items = useMemo(
    (): (SlimStep | typeof RUNNING)[] => (isRunning ? [...steps, RUNNING] : steps),
    [steps, isRunning],
  );
  const rows = items.length;

  useEffect(() => {
    const index = selected === null ? -1 : timeline.state.value.steps.findIndex((step) => step.iteration === selected);
    if (index < 0) return;
    isFollowing.current = false;
    list.current?.scrollToIndex(index, { align: "nearest" });
  }, [selected, timeline, isLoading, isFollowing]);

  const look = (offset: number) => {
    const handle = list.current;
    if (!handle) return;
    const left = handle.scrollSize - offset - handle.viewportSize;
    scrolledTo(offset, left);
    if (offset < NEAR_START) void timeline.earlier();
    if (left < NEAR_START) void timeline.later();
  };
  return (
    <>
      <ListBar timeline={timeline} session={session} onNewest={onNewest} />
      {error && <Failure error={error} />}
      {rows === 0 && !isLoading ? (
        <Empty title="No steps yet">
          {session.status === "waiting" ? "It is waiting for guidance: write below." : "The first step is running."}
        </Empty>
      ) : (
        <div ref={frame} className="flex min-h-0 flex-1 flex-col">
          <VList
            ref={list}
            data={items}
            shift={isGrowingUp}
            className="flex-1"
            onScroll={look}
            aria-label="Steps"
            role="region"
            tabIndex={0}
          >
            {(step) =>
              step === RUNNING ? (
                <RunningRow
                  key={RUNNING}
                  session={session}
                  iteration={under ?? 0}
                  news={running?.iteration === under ? running : null}
                />
              ) : (
                <StepRow
                  key={step.id}
                  step={step}
                  isSelected={step.iteration === selected}
                  onSelect={onSelect}
                  session={session}
                />
              )
            }
          </VList>
        </div>
      )}
    </>
  );
}

type ListBarProps = Pick<TimelineViewProps, "timeline" | "session" | "onNewest">;

/** Freezes the list, counts what waits, and jumps to its end. */
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
          Jump to the newest of {count(session.iteration + 1)} steps
        </Button>
      )}
    </div>
  );
}
