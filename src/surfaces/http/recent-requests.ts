import type { SubmitOutcome } from "../../actions/action-queue.ts";
import { isObject } from "../../domain/json.ts";

/** More than can be in progress at once; the oldest are evicted first. */
const MOST = 10_000;

/**
 * Requests to sessions that carry `metadata.request_id`, so that a client without a response can send one again.
 *
 * REQUEST-1  A repeated request, while the first is in progress or soon after, gets the first one's outcome and writes nothing.
 *            A refused request is tried again. After a restart a client finds its request among the session's actions.
 */
export class RecentRequests {
  readonly #outcomes = new Map<string, Promise<SubmitOutcome>>();

  async once(request: unknown, submit: () => Promise<SubmitOutcome>): Promise<SubmitOutcome> {
    const key = keyOf(request);
    if (key === null) return submit();
    const first = this.#outcomes.get(key);
    if (first) return first;
    const outcome = submit();
    this.#outcomes.set(key, outcome);
    this.#evictOldest();
    const isAccepted = await outcome.then(({ kind }) => kind === "accepted").catch(() => false);
    if (!isAccepted) this.#outcomes.delete(key);
    return outcome;
  }

  #evictOldest(): void {
    if (this.#outcomes.size <= MOST) return;
    const [oldest] = this.#outcomes.keys();
    if (oldest !== undefined) this.#outcomes.delete(oldest);
  }
}

function keyOf(request: unknown): string | null {
  if (!isObject(request) || !isObject(request["metadata"])) return null;
  const { action_type, session_id, metadata } = request;
  const { request_id } = metadata;
  return typeof session_id === "string" && typeof request_id === "string"
    ? JSON.stringify([action_type, session_id, request_id])
    : null;
}
