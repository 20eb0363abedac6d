import { EverstepError } from "../domain/errors.ts";
import type { GuidanceAmount } from "../domain/guidance-amount.ts";
import type { Store } from "../store/store.ts";

export const DEFAULT_GUIDANCE_LIMIT: Readonly<GuidanceAmount> = { count: 10_000, bytes: 16 * 1024 * 1024 };

/** Why no more guidance is accepted for a session, and when to try again. */
export type Full = { kind: "full"; detail: string; retry_after_s: number };

/** Room for a piece of guidance. `written` is called once it is in the store, or never will be. */
export type Room = { kind: "room"; written: () => void };

const RETRY_AFTER_S = 5;
/** Milliseconds for which what did not fit is refused without another read. */
const FULL_FOR_MS = 1000;
/** Sessions that have a budget in memory. One that has none may get a hundredth of the limit before the store is read. */
const MOST_REMEMBERED = 10_000;
const UNSEEN_SHARE = 1 / 100;
/** The share of what was left after which the store is read again: other processes send guidance too. */
const READ_AGAIN_SHARE = 1 / 4;

type Budget = {
  /** What may still be accepted, as far as this process can tell. */
  left: GuidanceAmount;
  /** What may be accepted before the store is read again. */
  untilRead: GuidanceAmount;
  /** Accepted, and not in the store yet: a read does not see it. */
  underWay: GuidanceAmount;
  reading: Promise<void> | undefined;
  refused: { bytes: number; until: number } | undefined;
};

/**
 * Bounds the guidance of a session that no step has used yet, in the queue and pending, so that a flood ends with a clear answer.
 *
 * GUIDANCE-1  What counts is what the store has. It is read rarely: a flood costs few reads, a single word now and then none.
 * GUIDANCE-2  One process alone passes the limit only by what it accepted before its first read; several at once pass it by
 *             little.
 */
export class GuidanceLimit {
  readonly #store: Pick<Store, "unusedGuidance">;
  readonly #most: Readonly<GuidanceAmount>;
  readonly #budgets = new Map<string, Budget>();

  constructor(store: Pick<Store, "unusedGuidance">, most: Readonly<GuidanceAmount> = DEFAULT_GUIDANCE_LIMIT) {
    this.#store = store;
    this.#most = most;
  }

  /** Why a piece of guidance is not accepted, where that can be told without a read. */
  refusal(session_id: string, bytes: number): Full | null {
    const refused = this.#budgets.get(session_id)?.refused;
    return refused && bytes >= refused.bytes && performance.now() < refused.until ? this.#full(session_id) : null;
  }

  /** Takes room for one piece of guidance, until it is in the store. */
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
    add(budget.underWay, bytes, 1);
    return { kind: "room", written: () => add(budget.underWay, bytes, -1) };
  }

  #read(session_id: string, budget: Budget): Promise<void> {
    budget.reading ??= this.#readNow(session_id, budget).finally(() => {
      budget.reading = undefined;
    });
    return budget.reading;
  }

  async #readNow(session_id: string, budget: Budget): Promise<void> {
    // What is written meanwhile counts twice for now: that errs on the safe side.
    const { count, bytes } = budget.underWay;
    const used = await this.#store.unusedGuidance(session_id);
    budget.left = { count: this.#most.count - used.count - count, bytes: this.#most.bytes - used.bytes - bytes };
    budget.untilRead = shareOf(budget.left, READ_AGAIN_SHARE);
    budget.refused = undefined;
  }

  #budgetOf(session_id: string): Budget {
    const budget = this.#budgets.get(session_id) ?? {
      left: shareOf(this.#most, UNSEEN_SHARE),
      untilRead: shareOf(this.#most, UNSEEN_SHARE),
      underWay: { count: 0, bytes: 0 },
      reading: undefined,
      refused: undefined,
    };
    // Least recently used first.
    this.#budgets.delete(session_id);
    this.#budgets.set(session_id, budget);
    const [oldest] = this.#budgets.keys();
    if (this.#budgets.size > MOST_REMEMBERED && oldest !== undefined) this.#budgets.delete(oldest);
    return budget;
  }

  #full(session_id: string): Full {
    const { count, bytes } = this.#most;
    const { message } = new EverstepError(
      "guidance_full",
      `session ${session_id} was told so much that no step has used yet that this does not fit (at most ${count} pieces and ${bytes} bytes)`,
      "send it again when the session has gone on; resume it if it is paused",
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
