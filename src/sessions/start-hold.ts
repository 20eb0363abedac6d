import type { Session } from "../domain/session.ts";
import type { SessionRelease } from "../store/store.ts";

type HeldSession = Pick<Session, "session_id" | "agent_id" | "created_at">;

/**
 * Keeps sessions that existed when the process started from running steps until they are released. Everything else works: they
 * can be read, guided, paused and destroyed.
 */
export class StartHold {
  #isHolding: boolean;
  readonly #since: string;
  #session_ids: ReadonlySet<string> = new Set();
  #agent_ids: ReadonlySet<string> = new Set();

  constructor(isHolding: boolean, since: string) {
    this.#isHolding = isHolding;
    this.#since = since;
  }

  get isHolding(): boolean {
    return this.#isHolding;
  }

  holds({ session_id, agent_id, created_at }: HeldSession): boolean {
    if (!this.#isHolding || created_at >= this.#since) return false;
    return !this.#session_ids.has(session_id) && !this.#agent_ids.has(agent_id);
  }

  /** Returns a test for the sessions that this call releases. */
  release({ session_ids = [], agent_id, all }: SessionRelease): (session: HeldSession) => boolean {
    const before = new StartHold(this.#isHolding, this.#since);
    before.#session_ids = this.#session_ids;
    before.#agent_ids = this.#agent_ids;
    if (all) this.#isHolding = false;
    this.#session_ids = new Set([...this.#session_ids, ...session_ids]);
    if (agent_id !== undefined) this.#agent_ids = new Set([...this.#agent_ids, agent_id]);
    return (session) => before.holds(session) && !this.holds(session);
  }
}
