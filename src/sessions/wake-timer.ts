import { changeStatus, type Session } from "../domain/session.ts";
import type { Store } from "../store/store.ts";
import { startedAttempt } from "./attempts.ts";
import type { SessionRegistry } from "./registry.ts";

/** The most sessions woken at once; the others follow. */
const MOST_AT_ONCE = 500;
const STORE_RETRY_MS = 500;
/**
 * How often the clock is checked, in milliseconds: a timer stops while the machine sleeps and ignores a clock that is set
 * forward.
 */
const LONGEST_SLEEP_MS = 1000;

/**
 * Wakes sessions whose wait is over.
 *
 * TIMER-1  A session's row says what it waits for. This process has one timer, for the earliest of the sessions it owns.
 * TIMER-2  No session is woken early, whatever the timer says: the clock is compared with the row.
 * TIMER-3  The commit that wakes a session clears the time in its row, so a clock set back wakes none twice.
 */
export class WakeTimer {
  readonly #store: Store;
  readonly #registry: SessionRegistry;
  readonly #inProgress = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #unlisten = () => {};
  #isStopped = false;

  constructor(store: Store, registry: SessionRegistry) {
    this.#store = store;
    this.#registry = registry;
  }

  start(): void {
    this.#unlisten = this.#store.wakes.onEarlier(() => this.#schedule());
    this.#schedule();
  }

  /** Stops waking and waits for the wakes in progress. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unlisten();
    clearTimeout(this.#timer);
    await Promise.all(this.#inProgress);
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    const next = this.#isStopped || this.#inProgress.size >= MOST_AT_ONCE ? null : this.#store.wakes.nextAt();
    if (next === null) return;
    const wait = Math.min(LONGEST_SLEEP_MS, Math.max(0, next - Date.now()));
    this.#timer = setTimeout(() => this.#wakeDue(), wait);
  }

  #wakeDue(): void {
    const now_ms = Date.now(); // TIMER-2
    for (const session_id of this.#store.wakes.takeDue(now_ms, MOST_AT_ONCE - this.#inProgress.size)) {
      const waking = this.#wake(session_id, now_ms).finally(() => {
        this.#inProgress.delete(waking);
        if (this.#inProgress.size === MOST_AT_ONCE - 1) this.#schedule();
      });
      this.#inProgress.add(waking);
    }
    this.#schedule();
  }

  async #wake(session_id: string, now_ms: number): Promise<void> {
    const written = await this.#registry
      .withRunner(session_id, async (runner) => {
        const outcome = await runner?.change((session) => awakened(session, now_ms));
        if (outcome === "committed") runner?.wake();
        return outcome;
      })
      .catch(() => "failed" as const);
    // The store is unreachable, or the session is changing owners.
    if (written === "committed" || written === "nothing" || this.#isStopped) return;
    setTimeout(() => {
      this.#store.wakes.putBack(session_id);
      this.#schedule();
    }, STORE_RETRY_MS).unref();
  }
}

/** TIMER-3. Null if the session no longer waits, or waits for a later time. */
function awakened(session: Session, now_ms: number): { session: Session } | null {
  const isDue = session.status === "waiting" && session.wake_at !== null && Date.parse(session.wake_at) <= now_ms;
  if (!isDue) return null;
  const mark = startedAttempt(session) ?? { iteration: session.iteration + 1, attempts: 0 };
  const started_attempt = { ...mark, is_due: true as const };
  return { session: { ...changeStatus(session, "running"), wake_at: null, rests_since: null, started_attempt } };
}
