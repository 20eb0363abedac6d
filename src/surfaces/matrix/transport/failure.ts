import { ConnectionError, HTTPError, MatrixError, safeGetRetryAfterMs } from "matrix-js-sdk/lib/http-api/index.js";

/** What a call to the homeserver that failed means for the caller. */
export type Failure =
  /** Not now: again after this many milliseconds. */
  | { kind: "limited"; retry_after_ms: number }
  /** The access token is not known, or not any more. */
  | { kind: "unauthorized" }
  /** The homeserver says no, and will again: to what was asked for, or to who asks for it. */
  | { kind: "refused"; reason: string; is_about_content: boolean }
  /** The homeserver, or the bot itself, fails at exactly this. */
  | { kind: "broken"; reason: string }
  /** It cannot be reached, or something before it cannot reach it. */
  | { kind: "away"; reason: string };

const DEFAULT_WAIT_MS = 2000;

export function failureOf(error: unknown): Failure {
  const reason = error instanceof Error ? error.message : String(error);
  if (!(error instanceof HTTPError))
    // What is neither an answer nor of the network is a fault here, at exactly this.
    return { kind: isOfNetwork(error) ? "away" : "broken", reason };
  if (error.httpStatus === undefined) return { kind: "away", reason };
  const code = error instanceof MatrixError ? error.errcode : undefined;
  if (error.httpStatus === 429 || code === "M_LIMIT_EXCEEDED")
    return { kind: "limited", retry_after_ms: safeGetRetryAfterMs(error, DEFAULT_WAIT_MS) };
  if (error.httpStatus === 401) return { kind: "unauthorized" };
  if (error.httpStatus === 500) return { kind: "broken", reason };
  // A proxy before the homeserver answers without the homeserver's own code.
  if (error.httpStatus > 500 || code === undefined) return { kind: "away", reason };
  return { kind: "refused", reason, is_about_content: error.httpStatus === 400 || error.httpStatus === 413 };
}

const isOfNetwork = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  (error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError")) ||
  (error instanceof TypeError && error.cause !== undefined);
