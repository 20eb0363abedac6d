import type { Session } from "../../data/queries.ts";
import { Age, Time } from "../../ui/time.tsx";
import { LimitBanner } from "../inbox/limit-banner.tsx";
import { isProviderAway } from "./now/headline.ts";
import { PauseBanner } from "./pause-banner.tsx";

/** Why a session does not go on: it failed, reached a limit, waits for another attempt, is finishing a step, or is held. */
export function StatusBanner({ session }: { session: Session }) {
  const { status, last_error, retry_at, step_started_at } = session;
  return (
    <>
      {status === "error" && last_error !== null && (
        <p role="alert" className="rounded-md bg-bad-soft px-3 py-1.5 text-bad wrap-anywhere">
          {last_error}
        </p>
      )}
      {status === "running" && retry_at !== null && last_error !== null && (
        <p role="status" className="rounded-md bg-warn-soft px-3 py-1.5 wrap-anywhere">
          {isProviderAway(last_error) ? "Waiting for the provider until" : "Trying again at"} <Time at={retry_at} />:{" "}
          {last_error}
        </p>
      )}
      {status === "paused" && step_started_at !== null && (
        <p role="status" data-testid="finishing" className="rounded-md bg-warn-soft px-3 py-1.5">
          Step {session.iteration + 1} has been running for <Age at={step_started_at} /> and is finishing. No other step
          starts until you resume.
        </p>
      )}
      <LimitBanner session={session} />
      <PauseBanner session={session} />
    </>
  );
}
