import type { RoomEvent } from "../transport/room-event.ts";
import type { Database } from "./database.ts";

const KEPT_MS = 7 * 24 * 3_600_000;
const MOST_RETRIED = 500;

/** Encrypted events whose key has not arrived. They are tried again whenever keys arrive. */
export class Undecrypted {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add(event: RoomEvent): void {
    this.#database.run(
      "INSERT OR IGNORE INTO undecrypted (event_id, room_id, megolm_session, event, received_at) VALUES (?, ?, ?, ?, ?)",
      event.event_id,
      event.room_id,
      String(event.content["session_id"]),
      JSON.stringify(event),
      Date.now(),
    );
  }

  all(): RoomEvent[] {
    return this.#events(`SELECT event FROM undecrypted ORDER BY received_at DESC LIMIT ${MOST_RETRIED}`).toReversed();
  }

  delete(event_id: string): void {
    this.#database.run("DELETE FROM undecrypted WHERE event_id = ?", event_id);
  }

  /** When the oldest event arrived whose sender was not told yet, in milliseconds; null if there is none. */
  oldestUntold(): number | null {
    const sql = "SELECT min(received_at) AS oldest FROM undecrypted WHERE is_told = 0";
    return this.#database.all<{ oldest: number | null }>(sql)[0]?.oldest ?? null;
  }

  /** The first event of each missing key among those that arrived before a time; each key is returned once. */
  takeOverdue(before: number): RoomEvent[] {
    this.#database.run("DELETE FROM undecrypted WHERE received_at < ?", Date.now() - KEPT_MS);
    const events = this.#events(
      `SELECT event, min(received_at) FROM undecrypted AS overdue WHERE is_told = 0 AND received_at < ? AND NOT EXISTS (
         SELECT 1 FROM undecrypted AS told
         WHERE told.is_told = 1 AND told.room_id = overdue.room_id AND told.megolm_session = overdue.megolm_session
       ) GROUP BY room_id, megolm_session`,
      before,
    );
    this.#database.run("UPDATE undecrypted SET is_told = 1 WHERE is_told = 0 AND received_at < ?", before);
    return events;
  }

  #events(sql: string, ...values: number[]): RoomEvent[] {
    return this.#database.all<{ event: string }>(sql, ...values).map(({ event }) => JSON.parse(event) as RoomEvent);
  }
}
