import { useState } from "react";
import { conversationHref, href, sessionHref } from "../../app/router.ts";
import { pause, resume } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { CopyId } from "../../ui/copy.tsx";
import { count, dollars, plural } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Link } from "../../ui/link.tsx";
import { Status } from "../../ui/status.tsx";
import { Age, Time, Until } from "../../ui/time.tsx";
import { attempt } from "../../ui/toast.tsx";
import { LimitDialog } from "../inbox/limit-dialog.tsx";
import { isStoppedByLimit } from "../inbox/limit-form.tsx";
import { DestroyDialog } from "./destroy-dialog.tsx";
import { exportSession } from "./export-session.ts";
import { ForkDialog } from "./fork-dialog.tsx";
import { isHeld, PauseBanner } from "./pause-banner.tsx";

/** Errors of a model's provider that are waited out. */
const PROVIDER_AWAY = /^(?:provider_down|rate_limited): /;

type Open = "destroy" | "fork" | "limit" | null;

export function SessionHeader({ session }: { session: Session }) {
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  return (
    <header className="border-b border-line bg-surface px-4 py-2.5">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <Link href="/" aria-label="All sessions" className="rounded p-1 text-muted hover:bg-sunken hover:text-ink">
          <Icon name="left" />
        </Link>
        <h1 className="min-w-0 truncate text-[16px] font-semibold">{session.agent_id}</h1>
        <Status status={session.status} />
        <div className="ml-auto flex flex-wrap items-center gap-1.5">
          <Controls session={session} onOpen={setOpen} />
        </div>
      </div>
      <Facts session={session} />
      {session.status === "error" && session.last_error && (
        <p role="alert" className="mt-2 rounded-md bg-bad-soft px-3 py-1.5 text-bad wrap-anywhere">
          {session.last_error}
        </p>
      )}
      {session.status === "running" && session.retry_at !== null && session.last_error !== null && (
        <p role="status" className="mt-2 rounded-md bg-warn-soft px-3 py-1.5 wrap-anywhere">
          {PROVIDER_AWAY.test(session.last_error) ? "Waiting for the provider until" : "Trying again at"}{" "}
          <Time at={session.retry_at} />: {session.last_error}
        </p>
      )}
      {session.status === "paused" && session.step_started_at !== null && (
        <p role="status" data-testid="finishing" className="mt-2 rounded-md bg-warn-soft px-3 py-1.5">
          Step {session.iteration + 1}, which runs for <Age at={session.step_started_at} />, is finishing. None starts
          after it until you resume.
        </p>
      )}
      <div className="mt-2 empty:hidden">
        <PauseBanner session={session} />
      </div>
      {open === "destroy" && <DestroyDialog session={session} onClose={close} />}
      {open === "fork" && <ForkDialog session={session} iteration={session.iteration} onClose={close} />}
      {open === "limit" && <LimitDialog session={session} onClose={close} />}
    </header>
  );
}

function Controls({ session, onOpen }: { session: Session; onOpen: (open: Open) => void }) {
  const { session_id, status } = session;
  const isOver = status === "done" || status === "stopped" || status === "stopping";
  return (
    <>
      {(status === "running" || status === "waiting") && (
        <Button onClick={() => void attempt(() => pause(session_id))}>
          <Icon name="pause" className="size-3.5" />
          Pause
        </Button>
      )}
      {/* One that is held has the button beside the reason. */}
      {(status === "paused" || status === "error") && !isHeld(session) && (
        <Button look="primary" onClick={() => void attempt(() => resume(session_id))}>
          <Icon name="play" className="size-3.5" />
          {status === "error" ? "Try again" : "Resume"}
        </Button>
      )}
      {isStoppedByLimit(session) && (
        <Button look="primary" onClick={() => onOpen("limit")}>
          Extend…
        </Button>
      )}
      <Button disabled={session.iteration < 0} onClick={() => onOpen("fork")}>
        <Icon name="fork" className="size-3.5" />
        Fork…
      </Button>
      <Button
        aria-label="Export as JSON"
        title="Export as JSON"
        onClick={() => void attempt(() => exportSession(session_id))}
      >
        <Icon name="download" className="size-3.5" />
        <span className="hidden lg:inline">Export</span>
      </Button>
      <Button disabled={isOver} onClick={() => onOpen("destroy")}>
        <Icon name="stop" className="size-3.5" />
        Destroy…
      </Button>
    </>
  );
}

function Facts({ session }: { session: Session }) {
  const { parent_session_id, conversation_id, spawned_by, pause_reason } = session;
  return (
    <div className="mt-1 flex flex-wrap items-center gap-x-4 gap-y-1 text-muted md:pl-8">
      <CopyId id={session.session_id} label="session id" />
      <span>{session.moniker}</span>
      <span className="tabular-nums">{plural(session.iteration + 1, "step")}</span>
      <span className="tabular-nums">{count(session.tokens_used)} tokens</span>
      {session.cost_usd > 0 && <span className="tabular-nums">{dollars(session.cost_usd)}</span>}
      <span>
        started <Age at={session.created_at} /> ago
      </span>
      {session.stop_reason && <span className="text-warn">stopped: {session.stop_reason}</span>}
      {session.status === "waiting" && session.wake_at !== null && (
        <span data-testid="wakes">
          wakes <Until at={session.wake_at} />
        </span>
      )}
      {pause_reason?.kind === "person" && pause_reason.user_id !== undefined && (
        <span className="wrap-anywhere">
          paused by {pause_reason.user_id}
          {pause_reason.reason !== undefined && `: ${pause_reason.reason}`}
        </span>
      )}
      {spawned_by !== null && (
        <Link
          className="text-accent hover:underline"
          href={sessionHref(spawned_by.session_id, { step: spawned_by.iteration })}
        >
          Started by step {spawned_by.iteration} of its parent
        </Link>
      )}
      {conversation_id !== null && (
        <Link className="text-accent hover:underline" href={conversationHref(conversation_id)}>
          Conversation
        </Link>
      )}
      {parent_session_id !== null && (
        <>
          <Link
            className="text-accent hover:underline"
            href={sessionHref(parent_session_id, { step: session.parent_iteration })}
          >
            Forked at step {session.parent_iteration}
          </Link>
          <Link className="text-accent hover:underline" href={href(["compare", parent_session_id, session.session_id])}>
            Compare with its parent
          </Link>
        </>
      )}
    </div>
  );
}
