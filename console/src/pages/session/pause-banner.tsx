import { resume } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { attempt } from "../../ui/toast.tsx";

type Held = Pick<Session, "session_id" | "status" | "pause_reason" | "last_error">;

/** Paused by the server, not by a person. */
export const isHeld = ({ status, pause_reason }: Pick<Held, "status" | "pause_reason">): boolean =>
  status === "paused" && pause_reason !== null && pause_reason.kind !== "person";

/** Why a session is held, and a button that resumes it. */
export function PauseBanner({ session }: { session: Held }) {
  const { session_id, pause_reason, last_error } = session;
  if (!isHeld(session)) return null;
  const isBreakpoint = pause_reason?.kind === "breakpoint";
  return (
    <div
      role="status"
      data-testid="pause-banner"
      className={`flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md px-3 py-2 ${isBreakpoint ? "bg-warn-soft" : "bg-bad-soft text-bad"}`}
    >
      <span className="min-w-0 flex-1 wrap-anywhere">
        {isBreakpoint ? (
          <>
            Held at a breakpoint before step <span className="font-mono">{pause_reason.step_token}</span>.
          </>
        ) : (
          last_error
        )}
      </span>
      <Button look="primary" onClick={() => void attempt(() => resume(session_id))}>
        <Icon name="play" className="size-3.5" />
        {isBreakpoint ? "Resume" : "Try the step again"}
      </Button>
    </div>
  );
}
