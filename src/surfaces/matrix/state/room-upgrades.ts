import type { Database } from "./database.ts";

export type RoomUpgrade = { room_id: string; replacement: string; user_id: string };

/** Upgraded rooms and their replacements, which the bot follows. */
export class RoomUpgrades {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add({ room_id, replacement, user_id }: RoomUpgrade): void {
    this.#database.run(
      "INSERT OR IGNORE INTO room_upgrades (room_id, replacement, user_id) VALUES (?, ?, ?)",
      room_id,
      replacement,
      user_id,
    );
  }

  /** Upgrades that the bot has not followed yet. */
  open(): RoomUpgrade[] {
    const sql = "SELECT room_id, replacement, user_id FROM room_upgrades WHERE is_joined = 0";
    return this.#database.all<RoomUpgrade>(sql);
  }

  /** The replacement of a room, if the bot is in it. */
  replacementOf(room_id: string): string | null {
    const sql = "SELECT replacement FROM room_upgrades WHERE room_id = ? AND is_joined = 1";
    return this.#database.all<{ replacement: string }>(sql, room_id)[0]?.replacement ?? null;
  }

  /** The bot has joined this room: what was open in its predecessor continues here. False if it replaces no other. */
  joined(replacement: string): boolean {
    const sql = "UPDATE room_upgrades SET is_joined = 1 WHERE replacement = ? AND is_joined = 0 RETURNING room_id";
    const rooms = this.#database.all<{ room_id: string }>(sql, replacement);
    for (const { room_id } of rooms) {
      // A thread stays behind with its room.
      this.#database.run(
        "UPDATE OR REPLACE watches SET room_id = ?, thread = NULL WHERE room_id = ?",
        replacement,
        room_id,
      );
      for (const table of ["dialogs", "session_questions"])
        this.#database.run(`UPDATE OR REPLACE ${table} SET room_id = ? WHERE room_id = ?`, replacement, room_id);
    }
    return rooms.length > 0;
  }
}
