import type { Socket } from "socket.io";
import { type SessionSummary, summaryOf } from "../../domain/session-summary.ts";
import type { Events } from "../../events/events.ts";
import { drained, type Reader } from "../slow-readers.ts";

/** Changes are batched for this long, in milliseconds, so that a thousand busy sessions cause four messages a second. */
const BATCH_MS = 250;

/** Sends the newest summary of every changed session, as `session_summaries`. */
export async function followSummaries(
  events: Events,
  { socket, reader }: { socket: Socket; reader: Reader },
  signal: AbortSignal,
): Promise<void> {
  const changed = new Map<string, SessionSummary>();
  const send = async () => {
    await drained(reader, signal);
    if (!signal.aborted) socket.emit("session_summaries", { sessions: [...changed.values()] });
    changed.clear();
  };
  for await (const event of events.follow({ all: true }, signal)) {
    if (event.kind !== "session") continue;
    if (changed.size === 0) setTimeout(() => void send(), BATCH_MS);
    changed.set(event.session.session_id, summaryOf(event.session));
  }
}
