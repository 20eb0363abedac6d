import type { SessionSummary } from "../../data/queries.ts";
import { Until } from "../../ui/time.tsx";

/** A session's question, why it rests, or its last text. */
export function LastText({ row }: { row: SessionSummary }) {
  const { status, question, pause_reason, wake_at, text } = row;
  if (question !== null) return <span className="text-warn">Asks: {question.text}</span>;
  if (pause_reason?.kind === "breakpoint")
    return <span className="text-warn">Breakpoint before {pause_reason.step_token}</span>;
  if ((status === "error" || status === "paused") && row.last_error)
    return <span className="text-bad">{row.last_error}</span>;
  if (status === "running" && row.last_error) return <span className="text-warn">Retrying: {row.last_error}</span>;
  if (row.stop_reason !== null && row.stop_reason !== "destroyed")
    return <span className="text-warn">Stopped by {row.stop_reason}</span>;
  if (status === "waiting" && wake_at !== null)
    return (
      <>
        Wakes <Until at={wake_at} />
        {text !== null && `: ${text}`}
      </>
    );
  return text ?? "–";
}
