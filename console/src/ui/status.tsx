import type { SessionStatus } from "../../../src/domain/session.ts";

const COLORS: Readonly<Record<SessionStatus, string>> = {
  running: "text-running",
  waiting: "text-muted",
  paused: "text-warn",
  stopping: "text-warn",
  stopped: "text-muted",
  done: "text-good",
  error: "text-bad",
};

/** Pulses beside the words. The words themselves never pulse: dimmed text is hard to read. */
export const LiveDot = () => <span aria-hidden className="pulse inline-block size-1.5 rounded-full bg-current" />;

/** A status as a dot and a word, never by color alone. */
export function Status({ status }: { status: SessionStatus }) {
  const moves = status === "running" || status === "stopping";
  const isHollow = status === "waiting" || status === "stopped";
  return (
    <span className={`inline-flex items-center gap-1.5 font-medium ${COLORS[status]}`} data-status={status}>
      <span
        aria-hidden
        className={`size-2 rounded-full border-[1.5px] border-current ${isHollow ? "" : "bg-current"} ${moves ? "pulse" : ""}`}
      />
      {status}
    </span>
  );
}
