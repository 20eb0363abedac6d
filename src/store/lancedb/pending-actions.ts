import { type Action, byUrgencyThenArrival } from "../../domain/action.ts";

/**
 * The actions that are not processed, in memory.
 *
 * A1  One action of a session is handed out at a time, the most urgent first, then the oldest.
 * A2  An action that waits for its retry holds back the later ones of its session.
 */
export class PendingActions {
  readonly #bySession = new Map<string, Action[]>();
  readonly #claimed = new Map<string, string>();
  #depth = 0;
  #waitingForRetry = 0;

  get depth(): number {
    return this.#depth;
  }

  /** The session of one of these that has an action here, if any. */
  busySession(actions: readonly Action[]): string | null {
    return actions.find(({ session_id }) => this.#bySession.has(session_id))?.session_id ?? null;
  }

  get oldest(): string | null {
    let oldest: string | null = null;
    for (const actions of this.#bySession.values())
      for (const { created_at } of actions) if (oldest === null || created_at < oldest) oldest = created_at;
    return oldest;
  }

  /** An action as it was just committed: new, waiting for a retry, or processed. */
  update(action: Action): void {
    const { session_id, action_id } = action;
    const actions = this.#bySession.get(session_id) ?? [];
    const known = actions.findIndex((other) => other.action_id === action_id);
    if (known >= 0) this.#count(actions.splice(known, 1)[0] as Action, -1);
    if (!action.processed) {
      const later = actions.findLastIndex((other) => byUrgencyThenArrival(other, action) < 0);
      actions.splice(later + 1, 0, action);
      this.#count(action, 1);
    }
    if (actions.length > 0) this.#bySession.set(session_id, actions);
    else this.#bySession.delete(session_id);
    if (this.#claimed.get(session_id) === action_id) this.#claimed.delete(session_id);
  }

  claim(limit: number, now: string): Action[] {
    const ready: Action[] = [];
    for (const [session_id, [first]] of this.#bySession) {
      if (!first || this.#claimed.has(session_id)) continue; // A1
      if (first.run_at === null || first.run_at <= now) ready.push(first); // A2
    }
    const taken = ready.sort(byUrgencyThenArrival).slice(0, limit);
    for (const { session_id, action_id } of taken) this.#claimed.set(session_id, action_id);
    return taken;
  }

  /** When the next retry is due, in milliseconds of the clock; null where none waits. */
  nextRetryAt(): number | null {
    if (this.#waitingForRetry === 0) return null;
    let next: number | null = null;
    for (const [session_id, [first]] of this.#bySession) {
      if (!first?.run_at || this.#claimed.has(session_id)) continue;
      const at = Date.parse(first.run_at);
      if (next === null || at < next) next = at;
    }
    return next;
  }

  #count({ run_at }: Action, change: 1 | -1): void {
    this.#depth += change;
    if (run_at !== null) this.#waitingForRetry += change;
  }
}
