import type { Homeserver } from "./homeserver.ts";
import type { RoomEvent } from "./room-event.ts";

/** The events after the bot's own join, if that is among them: what was said before was not said to it. */
export function sinceOwnJoin(events: RoomEvent[], user_id: string): { after: RoomEvent[]; hasJoin: boolean } {
  const joined = events.findLastIndex((event) => isOwnJoin(event, user_id));
  return { after: events.slice(joined + 1), hasJoin: joined >= 0 };
}

/** The events of a room between two positions in the stream, oldest first. */
export async function fillGap(
  homeserver: Homeserver,
  room_id: string,
  from: string,
  to: string,
  user_id: string,
  signal: AbortSignal,
): Promise<RoomEvent[]> {
  const newestFirst: RoomEvent[] = [];
  let place: string | undefined = from;
  while (place !== undefined) {
    const page = await homeserver.messages(room_id, place, to, signal);
    const events = page.chunk.map((event) => ({ ...event, room_id }));
    const joined = events.findIndex((event) => isOwnJoin(event, user_id));
    newestFirst.push(...(joined >= 0 ? events.slice(0, joined) : events));
    place = joined >= 0 || page.end === place ? undefined : page.end;
  }
  return newestFirst.toReversed();
}

/** A change of name or picture is a join event as well. */
function isOwnJoin({ type, state_key, content, unsigned }: RoomEvent, user_id: string): boolean {
  return (
    type === "m.room.member" &&
    state_key === user_id &&
    content["membership"] === "join" &&
    unsigned?.prev_content?.membership !== "join"
  );
}
