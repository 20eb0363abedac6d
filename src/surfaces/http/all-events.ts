import type { CommittedEvent } from "../../domain/event.ts";
import { now, timeSchema } from "../../domain/ids.ts";
import type { Events, RuntimeEvent } from "../../events/events.ts";
import type { Store } from "../../store/store.ts";
import type { EventStream } from "../event-streams.ts";
import { missedEvents, type Reset } from "./missed-events.ts";

/**
 * How far a reconnecting reader is set back, in milliseconds: a row's time is taken before its commit, by the clock of the
 * process that made it.
 */
const OVERLAP_MS = 10_000;
/** A reader catches up in rounds; after one shorter than this it follows live events. */
const SHORT_ROUND_MS = 2000;
const MOST_ROUNDS = 20;

export type StreamedEvent = { event: RuntimeEvent | Reset; id?: string };

/**
 * All events, for a reader that may have been here before. Its cursor is a time, so it stays valid after a restart and on any
 * server of the same database.
 *
 * ALL-1  A cursor means that every row older than it by more than the overlap was sent. Rows within the overlap are repeated,
 *        none is missed.
 * ALL-2  What cannot be replayed is named by a `reset`, also if a clock was set back so far that times mean nothing.
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
    // Events during a long read would not fit into memory, so the reader starts following only after a short round.
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

/** Null if it is not a time, or one in the future by this machine's clock. */
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
