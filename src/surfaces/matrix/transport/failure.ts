import { ConnectionError, HTTPError, MatrixError, safeGetRetryAfterMs } from "matrix-js-sdk/lib/http-api/index.js";

/** What a failed call to the homeserver means for the caller. */
export type Failure =
  /** Try again after this many milliseconds. */
  | { kind: "limited"; retry_after_ms: number }
  /** The access token is unknown or expired. */
  | { kind: "unauthorized" }
  /** The homeserver refuses and will refuse again: because of the content or because of the sender. */
  | { kind: "refused"; reason: string; is_about_content: boolean }
  /** The homeserver, or the bot itself, fails on exactly this request. */
  | { kind: "broken"; reason: string }
  /** The homeserver, or a proxy in front of it, cannot be reached. */
  | { kind: "away"; reason: string };

const DEFAULT_WAIT_MS = 2000;

export function failureOf(error: unknown): Failure {
  const reason = error instanceof Error ? error.message : String(error);
  if (!(error instanceof HTTPError))
    // Neither a response nor a network error: a fault of the bot itself.
    return { kind: isOfNetwork(error) ? "away" : "broken", reason };
  if (error.httpStatus === undefined) return { kind: "away", reason };
  const code = error instanceof MatrixError ? error.errcode : undefined;
  if (error.httpStatus === 429 || code === "M_LIMIT_EXCEEDED")
    return { kind: "limited", retry_after_ms: safeGetRetryAfterMs(error, DEFAULT_WAIT_MS) };
  if (error.httpStatus === 401) return { kind: "unauthorized" };
  if (error.httpStatus === 500) return { kind: "broken", reason };
  // A proxy in front of the homeserver answers without a Matrix error code.
  if (error.httpStatus > 500 || code === undefined) return { kind: "away", reason };
  return { kind: "refused", reason, is_about_content: error.httpStatus === 400 || error.httpStatus === 413 };
}

const isOfNetwork = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  (error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError")) ||
  (error instanceof TypeError && error.cause !== undefined);
