import type { Database } from "./database.ts";

/** Single values: the position in the stream, the bot's login, and what is known about the agent's chat. */
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
  readonly #scope: string;

  /** `scope` separates the values of one chat from all others. */
  constructor(database: Database, scope = "") {
    this.#database = database;
    this.#scope = scope;
  }

  get(name: FactName): string | null {
    return (
      this.#database.all<{ value: string }>("SELECT value FROM facts WHERE name = ?", this.#scope + name)[0]?.value ??
      null
    );
  }

  number(name: FactName): number {
    return Number(this.get(name) ?? 0);
  }

  set(name: FactName, value: string | number): void {
    this.#database.run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", this.#scope + name, String(value));
  }

  clear(name: FactName): void {
    this.#database.run("DELETE FROM facts WHERE name = ?", this.#scope + name);
  }
}
