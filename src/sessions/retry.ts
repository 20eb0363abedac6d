import type { SessionOptions } from "../domain/session.ts";
import { StepError } from "../monikers/moniker.ts";
import type { EarlierAttempts } from "./attempts.ts";

const DEFAULT_RETRY = { max_attempts: 3, backoff_ms: 500, outage_s: 900 };
const LONGEST_ERROR = 10_000;
/** The longest delay between two attempts during an outage, in milliseconds, unless the provider asks for more. */
const LONGEST_OUTAGE_WAIT_MS = 60_000;
const MOST_DOUBLINGS = 20;

/** Whether an error is an outage that the session waits out. */
export function isOutage({ retry }: SessionOptions, error: unknown): boolean {
  const { outage_s = DEFAULT_RETRY.outage_s } = retry ?? {};
  return error instanceof StepError && error.outage && outage_s > 0;
}

/** The attempts after one more failure. An outage uses up no attempt; any other failure shows that the outage is over. */
export function afterFailure(earlier: EarlierAttempts, options: SessionOptions, error: unknown): EarlierAttempts {
  if (!isOutage(options, error)) return { ...earlier, failures: earlier.failures + 1, ...NO_OUTAGE };
  const { outage_since, outage_tries } = earlier;
  return { ...earlier, outage_since: outage_since ?? new Date().toISOString(), outage_tries: outage_tries + 1 };
}
const NO_OUTAGE = { outage_since: null, outage_tries: 0 };

/** Delay before the next attempt in milliseconds; null if none is left, or if a retry cannot help. */
export function nextAttemptIn(options: SessionOptions, error: unknown, earlier: EarlierAttempts): number | null {
  const { max_attempts, backoff_ms, outage_s } = { ...DEFAULT_RETRY, ...options.retry };
  const helps = !(error instanceof StepError) || error.retryable;
  const least = error instanceof StepError ? (error.retry_after_ms ?? 0) : 0;
  if (earlier.outage_since !== null) {
    const left = Date.parse(earlier.outage_since) + outage_s * 1000 - Date.now();
    const wait = Math.min(LONGEST_OUTAGE_WAIT_MS, backoff(backoff_ms, earlier.outage_tries));
    return left <= 0 ? null : Math.min(Math.max(1, least, wait), left + 1);
  }
  if (!helps || earlier.failures >= max_attempts) return null;
  return Math.max(1, least, backoff(backoff_ms, earlier.failures));
}

const backoff = (base_ms: number, tries: number): number =>
  base_ms * 2 ** Math.min(tries - 1, MOST_DOUBLINGS) * (0.5 + Math.random());

export function describeError(error: unknown): string {
  const text = error instanceof StepError ? `${error.code}: ${error.message}` : textOf(error);
  return text.slice(0, LONGEST_ERROR);
}

/** Anything can be thrown, even a value that cannot be converted to text. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return `a value that cannot be shown as text was thrown (${typeof thrown})`;
  }
}
