import type { CommittedEvent } from "../../domain/event.ts";
import { now, timeSchema } from "../../domain/ids.ts";
import type { Events, RuntimeEvent } from "../../events/events.ts";
import type { Store } from "../../store/store.ts";
import type { EventStream } from "../event-streams.ts";
import { missedEvents, type Reset } from "./missed-events.ts";

/**
 * Milliseconds by which a reader that comes back hears things again: a row's time is taken before its commit, and by the clock of
 * the process that made it.
 */
const OVERLAP_MS = 10_000;
/** A reader is brought up to date in rounds; one that took less than this is followed by listening. */
const SHORT_ROUND_MS = 2000;
const MOST_ROUNDS = 20;

export type StreamedEvent = { event: RuntimeEvent | Reset; id?: string };

/**
 * Everything, for a reader that may have been here before. Its cursor is a time, so that it holds after a restart and at any server of
 * the same database.
 *
 * ALL-1  A cursor says that every row whose time lies more than the overlap before it was sent. Rows within the overlap come again,
 *        none is left out.
 * ALL-2  What cannot be told again is named by a `reset`, also where a clock was set back so far that times say nothing.
 */
export async function* allEvents(
  { store, events }: { store: Store; events: Events },
  after: string | undefined,
  { gone, budget }: Pick<EventStream, "gone" | "budget">,
): AsyncGenerator<StreamedEvent> {
  let cursor = after === undefined ? now() : await knownTime(after);
  if (cursor === null) {
    yield { event: { kind: "reset", tables: ["sessions", "conversations"] } };
    cursor = now();
  } else if (after !== undefined) {
    // What happens while much is read would not fit into memory, so the reader listens from the last short round on.
    for (let round = 0; round < MOST_ROUNDS && !gone.aborted; round += 1) {
      const begun = now();
      for await (const event of missedEvents(store, before(cursor))) yield { event };
      cursor = begun;
      if (Date.now() - Date.parse(begun) < SHORT_ROUND_MS) break;
    }
  }
  const live = events.follow({ all: true }, gone, budget);
  if (after !== undefined) for await (const event of missedEvents(store, before(cursor))) yield { event };
  for await (const event of live) {
    if (event.kind === "delta") yield { event };
    else {
      const at = timeOf(event);
      if (at > cursor) cursor = at;
      yield { event, id: cursor };
    }
  }
}

/** Null where it is no time, or one that is yet to come by this machine's clock. */
async function knownTime(after: string): Promise<string | null> {
  const time = timeSchema.safeParse(after);
  return time.success && Date.parse(time.data) <= Date.now() + OVERLAP_MS ? time.data : null;
}

const before = (time: string): string => new Date(Date.parse(time) - OVERLAP_MS).toISOString();

function timeOf(event: CommittedEvent): string {
  switch (event.kind) {
    case "session":
      return event.session.updated_at;
    case "step":
      return event.step.created_at;
    case "message":
      return event.message.created_at;
    case "action":
      return event.action.processed_at ?? event.action.created_at;
  }
  return event satisfies never;
}
