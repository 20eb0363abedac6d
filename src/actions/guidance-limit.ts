import { EverstepError } from "../domain/errors.ts";
import type { GuidanceAmount } from "../domain/guidance-amount.ts";
import type { Store } from "../store/store.ts";

export const DEFAULT_GUIDANCE_LIMIT: Readonly<GuidanceAmount> = { count: 10_000, bytes: 16 * 1024 * 1024 };

/** Why no more guidance is accepted for a session, and when to try again. */
export type Full = { kind: "full"; detail: string; retry_after_s: number };

/** Room reserved for a piece of guidance. Call `written` once it is in the store or its write failed. */
export type Room = { kind: "room"; written: () => void };

const RETRY_AFTER_S = 5;
/** How long guidance that did not fit is refused without another read, in milliseconds. */
const FULL_FOR_MS = 1000;
/** Sessions with a budget in memory. A session without one may get a hundredth of the limit before the store is read. */
const MOST_BUDGETS = 10_000;
const UNSEEN_SHARE = 1 / 100;
/** The store is read again after this share of the budget is used: other processes send guidance too. */
const READ_AGAIN_SHARE = 1 / 4;

type Budget = {
  /** What may still be accepted, as far as this process knows. */
  left: GuidanceAmount;
  /** What may be accepted before the next read of the store. */
  untilRead: GuidanceAmount;
  /** Accepted but not yet in the store, so a read does not count it. */
  inFlight: GuidanceAmount;
  reading: Promise<void> | undefined;
  refused: { bytes: number; until: number } | undefined;
};

/**
 * Bounds a session's unused guidance, queued and pending, so that a flood gets a clear refusal.
 *
 * GUIDANCE-1  The store's count decides. It is read rarely: a flood costs few reads, an occasional message none.
 * GUIDANCE-2  One process exceeds the limit only by what it accepted before its first read; several processes together exceed
 *             it only slightly.
 */
export class GuidanceLimit {
  readonly #store: Pick<Store, "unusedGuidance">;
  readonly #most: Readonly<GuidanceAmount>;
  readonly #budgets = new Map<string, Budget>();

  constructor(store: Pick<Store, "unusedGuidance">, most: Readonly<GuidanceAmount> = DEFAULT_GUIDANCE_LIMIT) {
    this.#store = store;
    this.#most = most;
  }

  /** Why a piece of guidance is refused, if that is known without a read. */
  refusal(session_id: string, bytes: number): Full | null {
    const refused = this.#budgets.get(session_id)?.refused;
    return refused && bytes >= refused.bytes && performance.now() < refused.until ? this.#full(session_id) : null;
  }

  /** Reserves room for one piece of guidance until it is in the store. */
  async take(session_id: string, bytes: number): Promise<Full | Room> {
    const refusal = this.refusal(session_id, bytes);
    if (refusal) return refusal;
    const budget = this.#budgetOf(session_id);
    if (!fits(budget.untilRead, bytes) || !fits(budget.left, bytes)) await this.#read(session_id, budget); // GUIDANCE-1
    if (!fits(budget.left, bytes)) {
      budget.refused = { bytes, until: performance.now() + FULL_FOR_MS };
      return this.#full(session_id);
    }
    for (const amount of [budget.left, budget.untilRead]) add(amount, bytes, -1);
    add(budget.inFlight, bytes, 1);
    return { kind: "room", written: () => add(budget.inFlight, bytes, -1) };
  }

  #read(session_id: string, budget: Budget): Promise<void> {
    budget.reading ??= this.#readNow(session_id, budget).finally(() => {
      budget.reading = undefined;
    });
    return budget.reading;
  }

  async #readNow(session_id: string, budget: Budget): Promise<void> {
    // What is written during the read counts twice until the next one: too strict rather than too lax.
    const { count, bytes } = budget.inFlight;
    const used = await this.#store.unusedGuidance(session_id);
    budget.left = { count: this.#most.count - used.count - count, bytes: this.#most.bytes - used.bytes - bytes };
    budget.untilRead = shareOf(budget.left, READ_AGAIN_SHARE);
    budget.refused = undefined;
  }

  #budgetOf(session_id: string): Budget {
    const budget = this.#budgets.get(session_id) ?? {
      left: shareOf(this.#most, UNSEEN_SHARE),
      untilRead: shareOf(this.#most, UNSEEN_SHARE),
      inFlight: { count: 0, bytes: 0 },
      reading: undefined,
      refused: undefined,
    };
    // Moves it to the end: the first key is the least recently used.
    this.#budgets.delete(session_id);
    this.#budgets.set(session_id, budget);
    const [oldest] = this.#budgets.keys();
    if (this.#budgets.size > MOST_BUDGETS && oldest !== undefined) this.#budgets.delete(oldest);
    return budget;
  }

  #full(session_id: string): Full {
    const { count, bytes } = this.#most;
    const { message } = new EverstepError(
      "guidance_full",
      `session ${session_id} has no room for more unused guidance (at most ${count} pieces and ${bytes} bytes)`,
      "send it again after the session's next step; resume the session if it is paused",
    );
    return { kind: "full", detail: message, retry_after_s: RETRY_AFTER_S };
  }
}

const fits = ({ count, bytes }: GuidanceAmount, size: number): boolean => count >= 1 && bytes >= size;

function add(amount: GuidanceAmount, bytes: number, sign: 1 | -1): void {
  amount.count += sign;
  amount.bytes += sign * bytes;
}

const shareOf = ({ count, bytes }: GuidanceAmount, share: number): GuidanceAmount => ({
  count: Math.floor(count * share),
  bytes: Math.floor(bytes * share),
});
