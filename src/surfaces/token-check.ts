import { sameSecret } from "./access.ts";

const WINDOW_MS = 60_000;
/** The most addresses remembered; beyond that the oldest are evicted. */
const MOST_ADDRESSES = 10_000;
/** How long an address that sent the right token is trusted, in milliseconds. */
const TRUSTED_MS = 3_600_000;

export type TokenVerdict = "right" | "wrong" | "too_many";

/**
 * Compares tokens, and slows down guessing.
 *
 * TOKEN-1  After too many wrong tokens in a minute an address must wait, whatever token it sends, so that it learns nothing.
 * TOKEN-2  Unless the right token came from there within the hour: a client with an old token must not lock out others that
 *          share its address, for example behind a proxy.
 */
export class TokenCheck {
  readonly #most_wrong: number;
  readonly #wrong = new Map<string, { count: number; since: number }>();
  readonly #trusted = new Map<string, number>();

  /** `most_wrong`: wrong tokens allowed per address and minute. */
  constructor(most_wrong: number) {
    this.#most_wrong = most_wrong;
  }

  verdict(candidate: string | undefined, expected: string, address = ""): TokenVerdict {
    // A missing token is not a guess.
    if (candidate === undefined) return "wrong";
    const now = performance.now();
    const isTrusted = now - (this.#trusted.get(address) ?? Number.NEGATIVE_INFINITY) < TRUSTED_MS;
    const tries = this.#triesOf(address, now);
    if (tries.count >= this.#most_wrong && !isTrusted) return "too_many";
    if (sameSecret(candidate, expected)) {
      remember(this.#trusted, address, now);
      return "right";
    }
    remember(this.#wrong, address, { ...tries, count: tries.count + 1 });
    return "wrong";
  }

  #triesOf(address: string, now: number): { count: number; since: number } {
    const tries = this.#wrong.get(address);
    return tries && now - tries.since < WINDOW_MS ? tries : { count: 0, since: now };
  }
}

/** Newest last, so that the oldest is evicted first. */
function remember<Value>(entries: Map<string, Value>, address: string, value: Value): void {
  entries.delete(address);
  entries.set(address, value);
  if (entries.size > MOST_ADDRESSES) entries.delete(entries.keys().next().value as string);
}
