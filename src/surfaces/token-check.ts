import { sameSecret } from "./access.ts";

const WINDOW_MS = 60_000;
/** Addresses that are remembered; past this the oldest are forgotten. */
const MOST_ADDRESSES = 10_000;
/** Milliseconds for which an address that gave the right token is trusted to give it again. */
const TRUSTED_MS = 3_600_000;

export type TokenVerdict = "right" | "wrong" | "too_many";

/**
 * Compares tokens, and slows down who guesses.
 *
 * TOKEN-1  After so many wrong tokens in a minute an address is told to wait, whatever token it gives, so that it learns nothing.
 * TOKEN-2  Unless somebody gave the right one from there within the hour: a client with an old token must not lock out those who
 *          share its address, behind a proxy say.
 */
export class TokenCheck {
  readonly #most_wrong: number;
  readonly #wrong = new Map<string, { count: number; since: number }>();
  readonly #trusted = new Map<string, number>();

  /** Wrong tokens that one address may give in a minute. */
  constructor(most_wrong: number) {
    this.#most_wrong = most_wrong;
  }

  verdict(given: string | undefined, expected: string, address = ""): TokenVerdict {
    // Nothing is guessed where nothing is given.
    if (given === undefined) return "wrong";
    const now = performance.now();
    const isTrusted = now - (this.#trusted.get(address) ?? Number.NEGATIVE_INFINITY) < TRUSTED_MS;
    const tries = this.#triesOf(address, now);
    if (tries.count >= this.#most_wrong && !isTrusted) return "too_many";
    if (sameSecret(given, expected)) {
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

/** The newest last, so that the oldest is forgotten first. */
function remember<Value>(known: Map<string, Value>, address: string, value: Value): void {
  known.delete(address);
  known.set(address, value);
  if (known.size > MOST_ADDRESSES) known.delete(known.keys().next().value as string);
}
