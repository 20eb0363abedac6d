import type { Database } from "./database.ts";

/** Encrypted rooms. A room stays encrypted for good. */
export class EncryptedRooms {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add(room_id: string): void {
    this.#database.run("INSERT OR IGNORE INTO encrypted_rooms (room_id, is_refused) VALUES (?, 0)", room_id);
  }

  /** Records that the room was told that the bot cannot read it. True the first time. */
  refuse(room_id: string): boolean {
    this.add(room_id);
    return (
      this.#database.run("UPDATE encrypted_rooms SET is_refused = 1 WHERE room_id = ? AND is_refused = 0", room_id)
        .changes > 0
    );
  }

  has(room_id: string): boolean {
    return this.#database.all("SELECT 1 FROM encrypted_rooms WHERE room_id = ?", room_id).length > 0;
  }

  get isEmpty(): boolean {
    return this.#database.all("SELECT 1 FROM encrypted_rooms LIMIT 1").length === 0;
  }
}
