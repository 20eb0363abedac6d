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
import { useTitle } from "../../ui/use-title.ts";
import { QuestionView } from "../question/question-view.tsx";
import { GuideForm } from "./guide-form.tsx";
import { SessionHeader } from "./session-header.tsx";
import { SidePanel } from "./side-panel.tsx";
import { TimelineView } from "./timeline-view.tsx";

export default function SessionPage({ session_id }: { session_id: string }) {
  const { data: session, error, refetch } = useSession(session_id);
  useTitle(session ? `${session.agent_id} · ${session.question === null ? session.status : "asks"}` : "Session");
  if (error instanceof ApiError && error.status === 404)
    return (
      <Empty title="This session is unknown">
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
  const [timeline, setTimeline] = useState<Timeline | null>(null);
  const [opened, setOpened] = useState({ session, around: iteration });

  useEffect(() => {
    const next = new Timeline(opened.session.session_id);
    setTimeline(next);
    void next.open(opened.session, opened.around);
    return () => next.close();
  }, [opened]);

  useReconnected(() => {
    if (timeline?.state.value.error) setOpened({ session, around: iteration });
  });

  const choose = (next: number) => change({ step: next, tab: null }, { push: iteration === null });
  useKeys({
    p: () => void attempt(() => (session.status === "paused" ? resume : pause)(session.session_id)),
    m: () => document.querySelector<HTMLElement>("[data-guide]")?.focus(),
    a: () =>
      document
        .querySelector<HTMLElement>("[data-answer], [data-testid=question] :is(input, select, textarea)")
        ?.focus(),
    u: () => timeline?.pauseUpdates(!timeline.state.value.isPaused),
    j: () => choose(Math.min(session.iteration, (iteration ?? -1) + 1)),
    k: () => choose(Math.max(0, (iteration ?? session.iteration + 1) - 1)),
    Escape: () => change({ step: null, tab: null }),
  });

  return (
    <>
      <SessionHeader session={session} />
      <div className="flex min-h-0 flex-1 flex-col md:flex-row">
        <section
          aria-label="Timeline"
          className={`min-h-0 min-w-0 flex-1 flex-col md:flex ${tab === null ? "flex" : "hidden"}`}
        >
          {timeline && (
            <TimelineView
              key={opened.around ?? "newest"}
              timeline={timeline}
              session={session}
              selected={iteration}
              onSelect={choose}
              onNewest={() => {
                change({ step: null });
                setOpened({ session, around: null });
              }}
            />
          )}
          {session.question !== null && (
            <div className="max-h-[60%] shrink-0 overflow-y-auto border-t border-line bg-surface p-3">
              <QuestionView session={session} />
            </div>
          )}
          <GuideForm session={session} />
        </section>
        <SidePanel
          session={session}
          tab={tab}
          iteration={iteration}
          onTab={(next) => change({ tab: next, ...(next === null ? { step: null } : {}) })}
          onIteration={choose}
        />
      </div>
      {timeline && <Announcer timeline={timeline} />}
    </>
  );
}

/** Tells those who listen to the page rather than see it. */
function Announcer({ timeline }: { timeline: Timeline }) {
  const last = useSignal(timeline.state).steps.at(-1);
  return (
    <p className="sr-only" aria-live="polite">
      {last ? `Step ${last.iteration}` : ""}
    </p>
  );
}
