import type { Database } from "./database.ts";

/** Rooms that turned out to be encrypted, so that each is told once. */
export class EncryptedRooms {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** True the first time. */
  found(room_id: string): boolean {
    return this.#database.run("INSERT OR IGNORE INTO encrypted_rooms (room_id) VALUES (?)", room_id).changes > 0;
  }
}
