import { z } from "zod";
import type { KeyValues } from "./key-values.ts";

const loadedSchema = z.array(z.string()).catch([]);

type ChatSummary = { name: string | null; loaded: string[]; tokens_last: number; tokens_total: number };

/** What the bot knows about the agent's chat. It holds for one session: a chat that was reset elsewhere starts empty. */
export class ChatRecord {
  readonly #values: KeyValues;

  constructor(values: KeyValues) {
    this.#values = values;
  }

  /** An agent that does not name its session is assumed to continue the one it had. */
  of(session_id: string | null): ChatSummary {
    const current = this.#values.get("chat_session");
    if (current !== null && session_id !== null && current !== session_id)
      return { name: null, loaded: [], tokens_last: 0, tokens_total: 0 };
    return {
      name: this.#values.get("context_name"),
      loaded: loadedSchema.parse(JSON.parse(this.#values.get("loaded") ?? "[]")),
      tokens_last: this.#values.number("tokens_last"),
      tokens_total: this.#values.number("tokens_total"),
    };
  }

  /** Called before anything else is recorded about an answer of this session. */
  belongTo(session_id: string | null): void {
    const current = this.#values.get("chat_session");
    if (session_id === null || current === session_id) return;
    // Facts recorded before sessions were may belong to this one.
    if (current !== null) this.forget();
    this.#values.set("chat_session", session_id);
  }

  answered(tokens_used: number): void {
    this.#values.set("tokens_last", tokens_used);
    this.#values.set("tokens_total", this.#values.number("tokens_total") + tokens_used);
  }

  saved(name: string): void {
    this.#values.set("context_name", name);
  }

  loaded(name: string, adds: boolean): void {
    const others = adds ? this.of(null).loaded.filter((other) => other !== name) : [];
    this.#values.set("loaded", JSON.stringify([...others, name]));
  }

  forget(): void {
    for (const name of ["context_name", "loaded", "tokens_last", "tokens_total", "chat_session"] as const)
      this.#values.clear(name);
  }
}
