import type { Language } from "../catalogue/catalogue.ts";
import type { Database } from "./database.ts";

export type Settings = { language: Language; streaming: boolean };

/** Each person's settings. */
export class People {
  readonly #database: Database;
  readonly #language: Language;

  constructor(database: Database, language: Language) {
    this.#database = database;
    this.#language = language;
  }

  settings(user_id: string): Settings {
    const row = this.#database.all<{ language: Language | null; streaming: number | null }>(
      "SELECT language, streaming FROM people WHERE user_id = ?",
      user_id,
    )[0];
    return { language: row?.language ?? this.#language, streaming: (row?.streaming ?? 1) === 1 };
  }

  change(user_id: string, { language, streaming }: Settings): void {
    this.#database.run(
      "INSERT OR REPLACE INTO people (user_id, language, streaming) VALUES (?, ?, ?)",
      user_id,
      language,
      streaming ? 1 : 0,
    );
  }
}
