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
import { Age, Until } from "../../ui/time.tsx";
import { attempt } from "../../ui/toast.tsx";
import { ForkDialog } from "../fork/fork-dialog.tsx";
import { ForkedBy } from "../graph/forked-by.tsx";
import { isStoppedByLimit } from "../inbox/limit-form.tsx";
import { DestroyDialog } from "./destroy-dialog.tsx";
import { exportSession } from "./export-session.ts";
import { isHeld } from "./pause-banner.tsx";
import { StatusBanner } from "./status-banner.tsx";

type Open = "destroy" | "fork" | null;

type SessionHeaderProps = {
  session: Session;
  /** Whether to show the status banners, which the first tab shows too. */
  hasBanners: boolean;
};

export function SessionHeader({ session, hasBanners }: SessionHeaderProps) {
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
      {hasBanners && (
        <div className="mt-2 empty:hidden">
          <StatusBanner session={session} />
        </div>
      )}
      {open === "destroy" && <DestroyDialog session={session} onClose={close} />}
      {open === "fork" && <ForkDialog session={session} iteration={session.iteration} onClose={close} />}
    </header>
  );
}

function Controls({ session, onOpen }: { session: Session; onOpen: (open: Open) => void }) {
  const { session_id, status } = session;
  const isOver = status === "done" || status === "stopping" || (status === "stopped" && !isStoppedByLimit(session));
  return (
    <>
      {(status === "running" || status === "waiting") && (
        <Button onClick={() => void attempt(() => pause(session_id))}>
          <Icon name="pause" className="size-3.5" />
          Pause
        </Button>
      )}
      {/* Held sessions have the button beside the reason. */}
      {(status === "paused" || status === "error") && !isHeld(session) && (
        <Button look="primary" onClick={() => void attempt(() => resume(session_id))}>
          <Icon name="play" className="size-3.5" />
          {status === "error" ? "Try again" : "Resume"}
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

/** How many of its steps are read from an archive, and how many are gone with theirs. */
function Archived({ session: { archived } }: { session: Session }) {
  if (!archived) return null;
  return (
    <>
      {archived.steps > 0 && (
        <span data-testid="archived" title="They are read from the archive; see System.">
          {plural(archived.steps, "step")} from the archive
        </span>
      )}
      {archived.dropped_steps > 0 && (
        <span data-testid="dropped" className="text-warn" title="The archive that held them was deleted.">
          {plural(archived.dropped_steps, "step")} deleted with their archive
        </span>
      )}
    </>
  );
}

function Facts({ session }: { session: Session }) {
  const { parent_session_id, conversation_id, spawned_by, pause_reason } = session;
  return (
    <div className="mt-1 flex flex-wrap items-center gap-x-4 gap-y-1 text-muted md:pl-8">
      {/* On phones it is on the tab About. */}
      <span className="max-md:hidden">
        <CopyId id={session.session_id} label="session id" />
      </span>
      <span>{session.moniker}</span>
      <span className="tabular-nums">{plural(session.iteration + 1, "step")}</span>
      <span className="tabular-nums">{count(session.tokens_used)} tokens</span>
      {session.cost_usd > 0 && <span className="tabular-nums">{dollars(session.cost_usd)}</span>}
      <span>
        started <Age at={session.created_at} /> ago
      </span>
      <Archived session={session} />
      {session.status === "paused" && session.step_started_at !== null && (
        <span className="text-warn">finishing step {session.iteration + 1}</span>
      )}
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
            <ForkedBy session={session} />
          </Link>
          <Link className="text-accent hover:underline" href={href(["compare", parent_session_id, session.session_id])}>
            Compare with its parent
          </Link>
        </>
      )}
      <Link className="text-accent hover:underline" href={href(["compare", session.session_id])}>
        Compare…
      </Link>
    </div>
  );
}
