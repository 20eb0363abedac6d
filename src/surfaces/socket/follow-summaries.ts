import type { Socket } from "socket.io";
import { type SessionSummary, summaryOf } from "../../domain/session-summary.ts";
import type { Events } from "../../events/events.ts";
import { drained, type Reader } from "../slow-readers.ts";

/** Changes are gathered for this long, so that a thousand busy sessions are four messages a second. */
const GATHER_MS = 250;

/** Tells the newest summary of every session that changed, as `session_summaries`. */
export async function followSummaries(
  events: Events,
  { socket, reader }: { socket: Socket; reader: Reader },
  signal: AbortSignal,
): Promise<void> {
  const changed = new Map<string, SessionSummary>();
  const tell = async () => {
    await drained(reader, signal);
    if (!signal.aborted) socket.emit("session_summaries", { sessions: [...changed.values()] });
    changed.clear();
  };
  for await (const event of events.follow({ all: true }, signal)) {
    if (event.kind !== "session") continue;
    if (changed.size === 0) setTimeout(() => void tell(), GATHER_MS);
    changed.set(event.session.session_id, summaryOf(event.session));
  }
}
