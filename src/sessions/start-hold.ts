import type { Session } from "../domain/session.ts";
import type { SessionRelease } from "../store/store.ts";

/**
 * Keeps sessions that were there when the process started from running steps, until they are released. Everything else works:
 * they can be looked at, told something, paused and destroyed.
 */
export class StartHold {
  #isHolding: boolean;
  readonly #since: string;
  readonly #session_ids = new Set<string>();
  readonly #agent_ids = new Set<string>();

  constructor(isHolding: boolean, since: string) {
    this.#isHolding = isHolding;
    this.#since = since;
  }

  get isHolding(): boolean {
    return this.#isHolding;
  }

  holds({ session_id, agent_id, created_at }: Pick<Session, "session_id" | "agent_id" | "created_at">): boolean {
    if (!this.#isHolding || created_at > this.#since) return false;
    return !this.#session_ids.has(session_id) && !this.#agent_ids.has(agent_id);
  }

  release({ session_ids = [], agent_id, all }: SessionRelease): void {
    if (all) this.#isHolding = false;
    for (const id of session_ids) this.#session_ids.add(id);
    if (agent_id !== undefined) this.#agent_ids.add(agent_id);
  }
}
