import type { Database } from "./database.ts";

/** Single values: where the stream was left, who the bot is logged in as, and what is known of the agent's chat. */
const NAMES = [
  "since",
  "device_id",
  "access_token",
  "chat_session",
  "context_name",
  "loaded",
  "tokens_last",
  "tokens_total",
] as const;
type FactName = (typeof NAMES)[number];

export class KeyValues {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  get(name: FactName): string | null {
    return this.#database.all<{ value: string }>("SELECT value FROM facts WHERE name = ?", name)[0]?.value ?? null;
  }

  number(name: FactName): number {
    return Number(this.get(name) ?? 0);
  }

  set(name: FactName, value: string | number): void {
    this.#database.run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", name, String(value));
  }

  clear(name: FactName): void {
    this.#database.run("DELETE FROM facts WHERE name = ?", name);
  }
}
