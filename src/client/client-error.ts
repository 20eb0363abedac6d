import { type ErrorCode, EverstepError } from "../domain/errors.ts";
import type { Schemas } from "./api-types.ts";

type ClientErrorCode = Extract<
  ErrorCode,
  "answer_unreadable" | "request_refused" | "server_failed" | "server_timeout" | "server_unreachable"
>;
type Details = { status?: number; errors?: FieldError[]; retry_after_s?: number; cause?: unknown };

/** What is wrong with one field of a request. */
export type FieldError = NonNullable<Schemas["Problem"]["errors"]>[number];

/** Why a call brought no answer. `code` says which kind it is, `next` what to do about it. */
export class ClientError extends EverstepError {
  /** What happened, without the code and the next move: for a refused request the server's own words. */
  readonly what: string;
  /** The HTTP status; null where there was no answer. */
  readonly status: number | null;
  /** The fields that are wrong, where the server names them. */
  readonly errors: readonly FieldError[];
  /** Seconds after which the server asks to be tried again. */
  readonly retry_after_s: number | null;

  constructor(code: ClientErrorCode, what: string, next: string, details: Details = {}) {
    super(code, what, next, details.cause);
    this.what = what;
    this.status = details.status ?? null;
    this.errors = details.errors ?? [];
    this.retry_after_s = details.retry_after_s ?? null;
  }

  /** Nothing is known of what became of the request: it may have been carried out. */
  get isInDoubt(): boolean {
    return this.code === "server_unreachable" || this.code === "server_timeout" || this.code === "server_failed";
  }
}

/** An answer that says no, as an error. */
export function refusal(response: Response, text: string): ClientError {
  const { status } = response;
  const { detail, errors } = problemIn(text);
  const what = detail ?? `the server answered ${status}`;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const details: Details = { status, errors, ...(Number.isFinite(seconds) ? { retry_after_s: seconds } : {}) };
  if (status >= 500) return new ClientError("server_failed", what, "look at the server's log, then try again", details);
  return new ClientError("request_refused", what, nextMove(status, details.retry_after_s), details);
}

function nextMove(status: number, retry_after_s: number | undefined): string {
  switch (status) {
    case 401:
      return "give the server's token";
    case 403:
      return "use the server's loopback address, or set EVERSTEP_TOKEN there and give it here";
    case 404:
      return "see that the id is right";
    case 409:
      return "read what is there, then decide again";
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
