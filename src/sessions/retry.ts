import type { SessionOptions } from "../domain/session.ts";
import { StepError } from "../monikers/moniker.ts";

const DEFAULT_RETRY = { max_attempts: 3, backoff_ms: 500 };
const LONGEST_ERROR = 10_000;

/** Milliseconds to wait before the next attempt; null where none is left, or where the error says that it cannot help. */
export function nextAttemptIn({ retry }: SessionOptions, error: unknown, failures: number): number | null {
  const { max_attempts, backoff_ms } = { ...DEFAULT_RETRY, ...retry };
  const helps = !(error instanceof StepError) || error.retryable;
  if (!helps || failures >= max_attempts) return null;
  const least = error instanceof StepError ? (error.retry_after_ms ?? 0) : 0;
  return Math.max(1, least, backoff_ms * 2 ** (failures - 1) * (0.5 + Math.random()));
}

export function describeError(error: unknown): string {
  const text = error instanceof StepError ? `${error.code}: ${error.message}` : textOf(error);
  return text.slice(0, LONGEST_ERROR);
}

/** Anything can be thrown, also what has no text of its own. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return `something without a text was thrown (${typeof thrown})`;
  }
}
