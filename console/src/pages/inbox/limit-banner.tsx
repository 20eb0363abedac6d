import type { SessionSummary } from "../../data/queries.ts";
import { isStoppedByLimit, type Limit, LimitForm } from "./limit-form.tsx";

type LimitBannerProps = {
  session: Pick<SessionSummary, "session_id" | "status" | "stop_reason" | "options" | "created_at" | "iteration">;
};

/** Which limit stopped a session, and the form that raises it. */
export function LimitBanner({ session }: LimitBannerProps) {
  if (!isStoppedByLimit(session)) return null;
  const limit = session.stop_reason as Limit;
  return (
    <div className="flex flex-col gap-2 rounded-md bg-warn-soft px-3 py-2" data-testid="limit">
      <p>
        Reached <span className="font-mono">{limit}</span> ({session.options[limit]?.toLocaleString()}) after step{" "}
        {session.iteration}.
      </p>
      <LimitForm session={session} />
    </div>
  );
}
