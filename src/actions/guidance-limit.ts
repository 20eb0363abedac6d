import { EverstepError } from "../domain/errors.ts";
import type { GuidanceAmount } from "../store/guidance-amount.ts";
import type { Store } from "../store/store.ts";

export const DEFAULT_GUIDANCE_LIMIT: Readonly<GuidanceAmount> = { count: 10_000, bytes: 16 * 1024 * 1024 };

/** Why nothing more is taken in for a session, and when to try again. */
export type Full = { kind: "full"; detail: string; retry_after_s: number };

/** Room for a piece of guidance. `written` is called once it is in the store, or never will be. */
export type Room = { kind: "room"; written: () => void };

const RETRY_AFTER_S = 5;
/** Milliseconds for which what did not fit is refused without another look. */
const FULL_FOR_MS = 1000;
/** Sessions that are remembered; one that was forgotten may be told a hundredth of the limit before it is looked at again. */
const MOST_REMEMBERED = 10_000;
const UNSEEN_SHARE = 1 / 100;
/** The share of the room that was left after which it is looked again: others may tell the session things too. */
const LOOK_AGAIN_SHARE = 1 / 4;

type Known = {
  /** What may still be taken in, as far as it is known here. */
  left: GuidanceAmount;
  /** What may be taken in before it is looked again. */
  untilLook: GuidanceAmount;
  /** Taken in, and not in the store yet: a look does not see it. */
  underWay: GuidanceAmount;
  looking: Promise<void> | undefined;
  refused: { bytes: number; until: number } | undefined;
};

/**
 * Bounds what a session was told and no step used yet, in the queue and pending, so that a flood ends with a clear answer.
 *
 * L1  What counts is what the store has. It is looked at rarely: a flood costs few looks, and a single word now and then costs none.
 * L2  One process never passes the limit by itself but by what was taken in before the first look; several at once pass it by
 *     little.
 */
export class GuidanceLimit {
  readonly #store: Pick<Store, "unusedGuidance">;
  readonly #most: Readonly<GuidanceAmount>;
  readonly #known = new Map<string, Known>();

  constructor(store: Pick<Store, "unusedGuidance">, most: Readonly<GuidanceAmount> = DEFAULT_GUIDANCE_LIMIT) {
    this.#store = store;
    this.#most = most;
  }

  /** Why a piece of guidance is not taken in, where that is known without a look. */
  refusal(session_id: string, bytes: number): Full | null {
    const refused = this.#known.get(session_id)?.refused;
    return refused && bytes >= refused.bytes && performance.now() < refused.until ? this.#full(session_id) : null;
  }

  /** Takes room for one piece of guidance, until it is in the store. */
  async take(session_id: string, bytes: number): Promise<Full | Room> {
    const refusal = this.refusal(session_id, bytes);
    if (refusal) return refusal;
    const known = this.#remembered(session_id);
    if (!fits(known.untilLook, bytes) || !fits(known.left, bytes)) await this.#look(session_id, known); // L1
    if (!fits(known.left, bytes)) {
      known.refused = { bytes, until: performance.now() + FULL_FOR_MS };
      return this.#full(session_id);
    }
    for (const amount of [known.left, known.untilLook]) add(amount, bytes, -1);
    add(known.underWay, bytes, 1);
    return { kind: "room", written: () => add(known.underWay, bytes, -1) };
  }

  #look(session_id: string, known: Known): Promise<void> {
    known.looking ??= this.#lookNow(session_id, known).finally(() => {
      known.looking = undefined;
    });
    return known.looking;
  }

  async #lookNow(session_id: string, known: Known): Promise<void> {
    // What is written meanwhile counts twice for now: that errs on the safe side.
    const { count, bytes } = known.underWay;
    const used = await this.#store.unusedGuidance(session_id);
    known.left = { count: this.#most.count - used.count - count, bytes: this.#most.bytes - used.bytes - bytes };
    known.untilLook = shareOf(known.left, LOOK_AGAIN_SHARE);
    known.refused = undefined;
  }

  #remembered(session_id: string): Known {
    const known = this.#known.get(session_id) ?? {
      left: shareOf(this.#most, UNSEEN_SHARE),
      untilLook: shareOf(this.#most, UNSEEN_SHARE),
      underWay: { count: 0, bytes: 0 },
      looking: undefined,
      refused: undefined,
    };
    // The one that was asked for last is forgotten last.
    this.#known.delete(session_id);
    this.#known.set(session_id, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_REMEMBERED && oldest !== undefined) this.#known.delete(oldest);
    return known;
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
