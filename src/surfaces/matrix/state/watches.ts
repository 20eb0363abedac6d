import type { Database } from "./database.ts";

export type Watch = {
  room_id: string;
  session_id: string;
  user_id: string;
  after_iteration: number;
  /** The first event of the thread where it is shown. */
  thread: string | null;
};

/** Sessions whose steps are shown in a room, and the last step shown. */
export class Watches {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  all(): Watch[] {
    return this.#database.all<Watch>("SELECT * FROM watches ORDER BY room_id, session_id");
  }

  in(room_id: string): Watch[] {
    return this.all().filter((watch) => watch.room_id === room_id);
  }

  set({ room_id, session_id, user_id, after_iteration, thread }: Watch): void {
    this.#database.run(
      "INSERT OR REPLACE INTO watches (room_id, session_id, user_id, after_iteration, thread) VALUES (?, ?, ?, ?, ?)",
      room_id,
      session_id,
      user_id,
      after_iteration,
      thread,
    );
  }

  end({ room_id, session_id }: Pick<Watch, "room_id" | "session_id">): void {
    this.#database.run("DELETE FROM watches WHERE room_id = ? AND session_id = ?", room_id, session_id);
  }
}
