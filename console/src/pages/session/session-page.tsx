import { useEffect, useState } from "react";
import { useQueryState } from "../../app/router.ts";
import { useKeys } from "../../app/shortcuts.tsx";
import { ApiError } from "../../data/api.ts";
import { pause, resume } from "../../data/commands.ts";
import { type Session, useSession } from "../../data/queries.ts";
import { useSignal } from "../../data/signal.ts";
import { Timeline } from "../../data/timeline.ts";
import { useReconnected } from "../../data/use-reconnected.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { Link } from "../../ui/link.tsx";
import { attempt } from "../../ui/toast.tsx";
import { NARROW, useMedia } from "../../ui/use-media.ts";
import { useTitle } from "../../ui/use-title.ts";
import { answerByKey } from "../question/answer-by-key.ts";
import { GuideForm } from "./guide-form.tsx";
import { StepPicture } from "./picture/step-picture.tsx";
import { SessionHeader } from "./session-header.tsx";
import { FIRST_TAB, STEPS_TAB } from "./session-tabs.tsx";
import { SidePanel } from "./side-panel.tsx";
import { TimelineView } from "./timeline-view.tsx";

export default function SessionPage({ session_id }: { session_id: string }) {
  const { data: session, error, refetch } = useSession(session_id);
  useTitle(session ? `${session.agent_id} · ${session.question === null ? session.status : "asks"}` : "Session");
  if (error instanceof ApiError && error.status === 404)
    return (
      <Empty title="Session not found" isPage>
        <Link href="/" className="text-accent underline">
          Show all sessions
        </Link>
      </Empty>
    );
  if (!session && error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!session) return <p className="p-6 text-muted">Loading…</p>;
  return <OpenSession session={session} />;
}

function OpenSession({ session }: { session: Session }) {
  const [search, change] = useQueryState();
  const step = search.get("step");
  const iteration = step !== null && /^\d+$/.test(step) ? Number(step) : null;
  const tab = search.get("tab") ?? (iteration === null ? null : "step");
  const isNarrow = useMedia(NARROW);
  const isNow = tab === null || tab === FIRST_TAB;
  const { timeline, around, reopen } = useTimeline(session, iteration);

  const choose = (next: number) => change({ step: next, tab: null }, { push: iteration === null });
  // The question is on the first tab: nobody should answer what they do not see.
  const answer = (event: KeyboardEvent, key: "a" | "d") => {
    if (isNow) answerByKey(event, key);
    else if (session.question !== null) change({ tab: FIRST_TAB });
  };
  useKeys({
    p: () => void attempt(() => (session.status === "paused" ? resume : pause)(session.session_id)),
    m: () => document.querySelector<HTMLElement>("[data-guide]")?.focus(),
    a: (event) => answer(event, "a"),
    d: (event) => answer(event, "d"),
    u: () => timeline?.pauseUpdates(!timeline.state.value.isPaused),
    j: () => choose(Math.min(session.iteration, (iteration ?? -1) + 1)),
    k: () => choose(Math.max(0, (iteration ?? session.iteration + 1) - 1)),
    Escape: () => change({ step: null, tab: null }),
  });

  return (
    <>
      <SessionHeader session={session} hasBanners={!isNow} />
      {timeline && !isNarrow && session.iteration >= 0 && (
        <StepPicture
          key={session.session_id}
          session={session}
          timeline={timeline}
          selected={iteration}
          onSelect={choose}
        />
      )}
      <div className="flex min-h-0 flex-1 flex-col md:flex-row">
        <section
          aria-label="Timeline"
          className={`min-h-0 min-w-0 flex-col md:flex md:flex-1 ${tab === STEPS_TAB ? "flex flex-1" : isNow ? "flex flex-none" : "hidden"}`}
        >
          <div className={`min-h-0 flex-1 flex-col md:flex ${tab === STEPS_TAB ? "flex" : "hidden"}`}>
            {/* A hidden list cannot scroll to its end. */}
            {timeline && (!isNarrow || tab === STEPS_TAB) && (
              <TimelineView
                key={around ?? "newest"}
                timeline={timeline}
                session={session}
                selected={iteration}
                onSelect={choose}
                onNewest={() => {
                  change({ step: null });
                  reopen(null);
                }}
              />
            )}
          </div>
          <GuideForm session={session} />
        </section>
        {timeline && (
          <SidePanel
            session={session}
            timeline={timeline}
            tab={tab}
            iteration={iteration}
            onTab={(next) => change({ tab: next, ...(next === STEPS_TAB || next === FIRST_TAB ? { step: null } : {}) })}
            onIteration={choose}
          />
        )}
      </div>
      {timeline && <Announcer timeline={timeline} />}
    </>
  );
}

/**
 * The session's steps around one of them. Opened again around a step that is chosen elsewhere and is not among them, and if reading
 * failed and the connection is back.
 */
function useTimeline(session: Session, iteration: number | null) {
  const [timeline, setTimeline] = useState<Timeline | null>(null);
  const [opened, setOpened] = useState({ session, around: iteration });

  useEffect(() => {
    const next = new Timeline(opened.session.session_id);
    setTimeline(next);
    void next.open(opened.session, opened.around);
    return () => next.close();
  }, [opened]);

  useEffect(() => {
    if (!timeline || iteration === null || iteration > session.iteration) return;
    const { steps } = timeline.state.value;
    if (steps.length > 0 && !steps.some((step) => step.iteration === iteration))
      setOpened({ session, around: iteration });
    // Only when another step is chosen: a session that runs changes with every step.
    // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  }, [iteration]);

  useReconnected(() => {
    if (timeline?.state.value.error) setOpened({ session, around: iteration });
  });
  return { timeline, around: opened.around, reopen: (around: number | null) => setOpened({ session, around }) };
}

/** Announces new steps to screen readers. */
function Announcer({ timeline }: { timeline: Timeline }) {
  const last = useSignal(timeline.state).steps.at(-1);
  return (
    <p className="sr-only" aria-live="polite">
      {last ? `Step ${last.iteration}` : ""}
    </p>
  );
}
