import { type Action, byUrgencyThenArrival } from "../../domain/action.ts";
import { carriesGuidance } from "../../domain/action-type.ts";
import { type GuidanceAmount, jsonBytes } from "../../domain/guidance-amount.ts";
import type { JsonObject } from "../../domain/json.ts";

/**
 * The actions that are not processed, in memory.
 *
 * PENDING-1  One action of a session is handed out at a time, the most urgent first, then the oldest; with guidance comes what
 *     `claimFollowing` adds to it.
 * PENDING-2  An action that waits for its retry holds back the later ones of its session.
 */
export class PendingActions {
  /** Each list is sorted. */
  readonly #bySession = new Map<string, Action[]>();
  /** By session: the ids of those that were handed out. */
  readonly #claimed = new Map<string, Set<string>>();
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
    const at = placeIn(actions, action);
    const isListed = actions[at]?.action_id === action_id;
    if (isListed) this.#count(actions[at] as Action, -1);
    if (!action.processed) this.#count(action, 1);
    actions.splice(at, isListed ? 1 : 0, ...(action.processed ? [] : [action]));
    if (actions.length > 0) this.#bySession.set(session_id, actions);
    else this.#bySession.delete(session_id);
    const claimed = this.#claimed.get(session_id);
    if (claimed?.delete(action_id) && claimed.size === 0) this.#claimed.delete(session_id);
  }

  claim(limit: number, now: string): Action[] {
    const ready: Action[] = [];
    for (const [session_id, [first]] of this.#bySession) {
      if (!first || this.#claimed.has(session_id)) continue; // PENDING-1
      if (isDue(first, now)) ready.push(first); // PENDING-2
    }
    const taken = ready.sort(byUrgencyThenArrival).slice(0, limit);
    for (const { session_id, action_id } of taken) this.#claimed.set(session_id, new Set([action_id]));
    return taken;
  }

  /** See the port. */
  claimFollowing({ session_id, action_id, payload }: Action, most: GuidanceAmount, now: string): Action[] {
    const claimed = this.#claimed.get(session_id);
    if (!claimed?.has(action_id)) return [];
    const following: Action[] = [];
    let room: GuidanceAmount | null = { count: most.count - 1, bytes: most.bytes - jsonBytes(payload) };
    for (const action of this.#bySession.get(session_id) ?? []) {
      if (claimed.has(action.action_id)) continue;
      if (!isDue(action, now)) break; // PENDING-2
      if (!carriesGuidance(action)) {
        following.push(action);
        break;
      }
      if (room) room = { count: room.count - 1, bytes: room.bytes - jsonBytes(action.payload) };
      if (!room || room.count < 0 || room.bytes < 0) room = null;
      else following.push(action);
    }
    for (const action of following) claimed.add(action.action_id);
    return following;
  }

  /** What brings guidance to a session. */
  guidanceFor(session_id: string): JsonObject[] {
    return (this.#bySession.get(session_id) ?? []).filter(carriesGuidance).map(({ payload }) => payload);
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

const isDue = ({ run_at }: Action, now: string): boolean => run_at === null || run_at <= now;

/** Where the action is in a sorted list, or would be. */
function placeIn(actions: readonly Action[], action: Action): number {
  let [low, high] = [0, actions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byUrgencyThenArrival(actions[middle] as Action, action) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
