import type { RoomEvent } from "../transport/room-event.ts";
import type { Database } from "./database.ts";

export type InboxRow = { position: number; event: RoomEvent };

/** Room events in the order in which to handle them. Each is stored once, however often the homeserver repeats it. */
export class Inbox {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add(event: RoomEvent): boolean {
    const { changes } = this.#database.run(
      "INSERT OR IGNORE INTO inbox (event_id, room_id, event) VALUES (?, ?, ?)",
      event.event_id,
      event.room_id,
      JSON.stringify(event),
    );
    return changes > 0;
  }

  next(): InboxRow | null {
    const row = this.#database.all<{ position: number; event: string }>(
      "SELECT position, event FROM inbox WHERE is_done = 0 ORDER BY position LIMIT 1",
    )[0];
    return row ? { position: row.position, event: JSON.parse(row.event) as RoomEvent } : null;
  }

  find(event_id: string): RoomEvent | null {
    const row = this.#database.all<{ event: string }>("SELECT event FROM inbox WHERE event_id = ?", event_id)[0];
    return row ? (JSON.parse(row.event) as RoomEvent) : null;
  }

  /** The room where a person spoke last. */
  lastRoomOf(user_id: string): string | null {
    const [row] = this.#database.all<{ room_id: string }>(
      "SELECT room_id FROM inbox WHERE json_extract(event, '$.sender') = ? ORDER BY position DESC LIMIT 1",
      user_id,
    );
    return row?.room_id ?? null;
  }

  /** It is not tried again. */
  setAside(position: number, error: string): void {
    this.#database.run("UPDATE inbox SET is_done = 1, error = ? WHERE position = ?", error, position);
  }

  done(position: number): void {
    this.#database.run("UPDATE inbox SET is_done = 1 WHERE position = ?", position);
  }
}
