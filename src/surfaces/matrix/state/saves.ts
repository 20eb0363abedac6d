import type { Database } from "./database.ts";

export type Save = { user_id: string; name: string; saved_at: string };

/** Names of contexts that the agent confirmed to have saved, by person. */
export class Saves {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  record(user_id: string, name: string, saved_at: string): void {
    this.#database.run(
      "INSERT OR REPLACE INTO saves (user_id, name, saved_at) VALUES (?, ?, ?)",
      user_id,
      name,
      saved_at,
    );
  }

  /** Newest first. */
  of(user_id: string): Save[] {
    return this.#database.all<Save>("SELECT * FROM saves WHERE user_id = ? ORDER BY saved_at DESC, name", user_id);
  }

  /** Everyone shares the agent's folder, so a name may be somebody else's. The person's own comes first. */
  named(name: string, user_id: string): Save | null {
    return (
      this.#database.all<Save>(
        "SELECT * FROM saves WHERE name = ? ORDER BY user_id = ? DESC LIMIT 1",
        name,
        user_id,
      )[0] ?? null
    );
  }
}
