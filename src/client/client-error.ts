import { type ErrorCode, EverstepError } from "../domain/errors.ts";
import type { Schemas } from "./api-types.ts";

type ClientErrorCode = Extract<
  ErrorCode,
  "answer_unreadable" | "request_refused" | "server_failed" | "server_timeout" | "server_unreachable"
>;
type Details = { status?: number; errors?: FieldError[]; retry_after_s?: number; cause?: unknown };

/** What is wrong with one field of a request. */
export type FieldError = NonNullable<Schemas["Problem"]["errors"]>[number];

/** Why a call failed. `code` is the kind of failure, `next` what to do about it. */
export class ClientError extends EverstepError {
  /** What happened, without code and advice; for a refused request the server's own message. */
  readonly what: string;
  /** The HTTP status; null if there was no response. */
  readonly status: number | null;
  /** The wrong fields, if the server names them. */
  readonly errors: readonly FieldError[];
  /** The delay in seconds that the server asks for before a retry. */
  readonly retry_after_s: number | null;

  constructor(code: ClientErrorCode, what: string, next: string, details: Details = {}) {
    super(code, what, next, details.cause);
    this.what = what;
    this.status = details.status ?? null;
    this.errors = details.errors ?? [];
    this.retry_after_s = details.retry_after_s ?? null;
  }

  /** Whether the request may have been carried out: its outcome is unknown. */
  get isInDoubt(): boolean {
    return this.code === "server_unreachable" || this.code === "server_timeout" || this.code === "server_failed";
  }
}

/** An error response as an error. */
export function refusal(response: Response, text: string): ClientError {
  const { status } = response;
  const { detail, errors } = problemIn(text);
  const what = detail ?? `the server answered ${status}`;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const details: Details = { status, errors, ...(Number.isFinite(seconds) ? { retry_after_s: seconds } : {}) };
  if (status >= 500) return new ClientError("server_failed", what, "check the server's log, then try again", details);
  return new ClientError("request_refused", what, nextMove(status, details.retry_after_s), details);
}

function nextMove(status: number, retry_after_s: number | undefined): string {
  switch (status) {
    case 401:
      return "pass the server's token";
    case 403:
      return "use the server's loopback address, or set EVERSTEP_TOKEN there and pass it here";
    case 404:
      return "check the id";
    case 409:
      return "read the current state, then decide again";
    case 429:
      return `try again in ${retry_after_s ?? 60} seconds`;
    default:
      return "correct the request";
  }
}

function problemIn(text: string): { detail?: string; errors: FieldError[] } {
  try {
    const { detail, errors } = JSON.parse(text) as Partial<Schemas["Problem"]>;
    return {
      ...(typeof detail === "string" ? { detail } : {}),
      errors: Array.isArray(errors) ? errors : [],
    };
  } catch {
    return { errors: [] };
  }
}
