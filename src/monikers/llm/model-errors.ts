import { z } from "zod";
import { isObject } from "../../domain/json.ts";
import { StepError } from "../moniker.ts";
import { providerMessage } from "./provider-message.ts";

export type ModelLimits = {
  /** The longest wait for the first token and between two tokens, in milliseconds. */
  first_token_ms: number;
  /** The longest time for a whole reply, in milliseconds. */
  reply_ms: number;
};

/** The context of a failed call. */
export type Circumstances = {
  /** The model's name, for the error text. */
  model: string;
  key: string | undefined;
  /** The texts sent to the model; an error must not repeat them. */
  sent: readonly string[];
  limits: ModelLimits;
  /** The limit that ended the call, if any. */
  exceeded: "first_token" | "reply" | null;
};

/** A provider's failure, whichever library reported it. */
export type ProviderFailure = {
  /** Undefined: the connection failed, or the failure came within a stream. */
  status?: number | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  /** The body of the response, or the error's own message. */
  text: string;
};

const LONGEST_RETRY_AFTER_MS = 600_000;

/** How providers say that a request exceeds the model's window. */
const TOO_LARGE = [
  /context[_ ]length[_ ]exceeded/i,
  /maximum (?:context|model|prompt|input) length/i,
  /exceeds? the (?:model'?s? )?(?:maximum )?(?:available )?context/i,
  /exceeds? (?:the )?context (?:window|limit|size|length)/i,
  /context (?:window|limit|size|length) (?:is |was |has been )?exceeded/i,
  /exceed_context_size/i,
  /prompt is too long/i,
  /input is too long/i,
  /exceed context limit/i,
  /input token count .{0,40}exceeds the maximum/i,
  /exceeds the maximum number of (?:input )?tokens/i,
  /too many (?:input |total )?tokens/i,
  /reduce the length of the (?:messages|prompt|input)/i,
  /request_too_large/i,
  /larger than the context/i,
  /model_context_window_exceeded/i,
];
/** How they say that they refuse to answer. */
const REFUSED = [/content_policy_violation/i, /content[_ ]filter/i, /ResponsibleAIPolicyViolation/i, /safety system/i];
/** Google answers 400 for an unknown key. */
const BAD_KEY = [/API_KEY_INVALID/, /API key not valid/i, /invalid[_ ]api[_ ]key/i];

const matchesAny = (patterns: readonly RegExp[], text: string): boolean =>
  patterns.some((pattern) => pattern.test(text));

export const cancelled = (reason: unknown): StepError => {
  const why = reason instanceof Error ? `: ${reason.message}` : "";
  return new StepError("cancelled", `the call was cancelled${why}`, { retryable: false, cause: reason });
};

export const replyTooLong = (model: string): StepError =>
  new StepError(
    "reply_too_long",
    `the reply of ${model} was cut off at its length limit; raise options.model_settings.max_output_tokens, or ask for less at once`,
    { retryable: false },
  );

export const refused = (model: string, explanation: string): StepError =>
  new StepError("model_refused", `${model} refuses to answer this${explanation === "" ? "" : `: ${explanation}`}`, {
    retryable: false,
  });

export const cutOff = (model: string): StepError =>
  new StepError("provider_down", `the reply of ${model} ended before it was complete`, {
    retryable: true,
    outage: true,
  });

export const badOutput = (message: string): StepError => new StepError("bad_output", message, { retryable: true });

/** Turns a failed call into a step's error: what happened, in the provider's words, and whether a retry can help. */
export function modelError(failure: ProviderFailure, circumstances: Circumstances): StepError {
  const { model, key, sent, limits, exceeded } = circumstances;
  const { status, headers, text } = failure;
  const reason = reasonIn(text);
  const fail = (
    code: string,
    what: string,
    more: { outage?: boolean; retry_after_ms?: number | undefined } = {},
  ): StepError => new StepError(code, providerMessage(what, key, sent), { retryable: more.outage ?? false, ...more });
  const outage = (code: string, what: string): StepError =>
    fail(code, what, { outage: true, retry_after_ms: retryAfter(headers, text) });
  if (exceeded === "first_token")
    return outage("provider_down", `${model} sent nothing for ${limits.first_token_ms / 1000} s`);
  if (exceeded === "reply")
    return outage("provider_down", `the reply of ${model} took longer than ${limits.reply_ms / 1000} s`);
  const answer = `${status === undefined ? "" : ` (${status})`}${reason}`;
  if (status === 429 || status === 529) return outage("rate_limited", `the provider asks to slow down${answer}`);
  if (status === undefined || status < 100)
    return matchesAny(TOO_LARGE, text)
      ? fail("context_too_large", `the request does not fit into the context window of ${model}${answer}`)
      : outage("provider_down", `the connection to the provider of ${model} failed${reason}`);
  if (status === 408 || status === 409 || status === 425 || status >= 500)
    return outage("provider_down", `the provider of ${model} cannot be reached or failed${answer}`);
  if (status === 413 || matchesAny(TOO_LARGE, text))
    return fail("context_too_large", `the request does not fit into the context window of ${model}${answer}`);
  if (status === 401 || status === 403 || matchesAny(BAD_KEY, text))
    return fail("model_auth", `the provider refused the key${answer}`);
  if (matchesAny(REFUSED, text)) return fail("model_refused", `${model} refuses to answer this${answer}`);
  return fail("model_rejected", `the provider rejected the request${answer}`);
}

const errorBody = z.object({ error: z.union([z.string(), z.object({ message: z.string() })]) });
const messageBody = z.object({ message: z.string() });

/** The provider's message in the body of a response, if there is one. */
function reasonIn(text: string): string {
  const parsed = parse(text);
  if (parsed === undefined) return text === "" || /^\s*</.test(text) ? "" : `: ${text}`;
  const body: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  const error = errorBody.safeParse(body);
  if (error.success) return `: ${typeof error.data.error === "string" ? error.data.error : error.data.error.message}`;
  const message = messageBody.safeParse(body);
  return message.success ? `: ${message.data.message}` : "";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How long the provider asks to wait: a header in seconds, milliseconds or as a date, or Google's `retryDelay` in the body. */
function retryAfter(headers: Readonly<Record<string, string>> | undefined, text: string): number | undefined {
  const inMs = Number(headers?.["retry-after-ms"]);
  const header = headers?.["retry-after"];
  const delay = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(text)?.[1];
  const ms =
    inMs > 0
      ? inMs
      : header !== undefined
        ? /^\d+(\.\d+)?$/.test(header)
          ? Number(header) * 1000
          : Date.parse(header) - Date.now()
        : Number(delay) * 1000;
  return ms > 0 ? Math.min(ms, LONGEST_RETRY_AFTER_MS) : undefined;
}

/** Reads an error that a provider's package threw or sent in a stream. */
export function sdkFailure(thrown: unknown): ProviderFailure {
  if (!isObject(thrown)) return { text: String(thrown) };
  const error = thrown as Record<string, unknown>;
  const status = [error["statusCode"], error["status"], error["code"]].find(
    // A stream that breaks off still has its initial status.
    (value): value is number => typeof value === "number" && value >= 400,
  );
  const body = error["responseBody"];
  const message = typeof error["message"] === "string" ? error["message"] : "";
  const type =
    typeof error["type"] === "string" ? error["type"] : typeof error["code"] === "string" ? error["code"] : "";
  return {
    status: status ?? statusOf(type, error["name"]),
    headers: error["responseHeaders"] as Record<string, string> | undefined,
    text: typeof body === "string" && body !== "" ? body : `${message}${causeOf(error["cause"])}`,
  };
}

/** An error within a stream has a type instead of a status. */
function statusOf(type: string, name: unknown): number | undefined {
  if (/rate_limit|quota|exhausted/i.test(type)) return 429;
  if (/overloaded/i.test(type)) return 529;
  if (/invalid_request|not_found|invalid_prompt/i.test(type)) return 400;
  // The package itself refused the request; nothing was sent.
  if (
    name === "AI_InvalidPromptError" ||
    name === "AI_UnsupportedFunctionalityError" ||
    name === "AI_InvalidArgumentError"
  )
    return 400;
  return undefined;
}

/** Only the cause of a failed connection says what failed. */
function causeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "";
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
  return code === "" ? "" : ` (${code})`;
}
