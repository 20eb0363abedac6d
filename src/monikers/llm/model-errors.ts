import { z } from "zod";
import { isObject } from "../../domain/json.ts";
import { StepError } from "../moniker.ts";
import { providerWords } from "./provider-words.ts";

export type ModelLimits = {
  /** Milliseconds until the first token, and between two of them. */
  first_token_ms: number;
  /** Milliseconds for a whole reply. */
  reply_ms: number;
};

/** What is known of a call that failed. */
export type Circumstances = {
  /** The model's name, for the reader. */
  model: string;
  key: string | undefined;
  /** What the model was told, which must not come back in an error. */
  told: readonly string[];
  limits: ModelLimits;
  /** Which of the limits ended it. */
  exceeded: "first_token" | "reply" | null;
};

/** What a provider said of a failure, whichever library brought it. */
export type ProviderFailure = {
  /** Undefined: the connection failed, or a stream told of it. */
  status?: number | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  /** The body of the answer, or what the error says of itself. */
  words: string;
};

const LONGEST_RETRY_AFTER_MS = 600_000;

/** How the providers say that a request does not fit into the model's window. */
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
/** How they say that they do not answer such a thing. */
const REFUSED = [/content_policy_violation/i, /content[_ ]filter/i, /ResponsibleAIPolicyViolation/i, /safety system/i];
/** Google answers 400 for a key that it does not know. */
const BAD_KEY = [/API_KEY_INVALID/, /API key not valid/i, /invalid[_ ]api[_ ]key/i];

const fits = (patterns: readonly RegExp[], text: string): boolean => patterns.some((pattern) => pattern.test(text));

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

export const refused = (model: string, said: string): StepError =>
  new StepError("model_refused", `${model} refuses to answer this${said === "" ? "" : `: ${said}`}`, {
    retryable: false,
  });

export const cutOff = (model: string): StepError =>
  new StepError("provider_down", `the reply of ${model} ended before it was whole`, { retryable: true, outage: true });

export const badOutput = (message: string): StepError => new StepError("bad_output", message, { retryable: true });

/** A call that failed as a step's error: what happened, in the provider's words, and whether trying again can help. */
export function modelError(failure: ProviderFailure, circumstances: Circumstances): StepError {
  const { model, key, told, limits, exceeded } = circumstances;
  const { status, headers, words } = failure;
  const reason = reasonIn(words);
  const fail = (
    code: string,
    what: string,
    more: { outage?: boolean; retry_after_ms?: number | undefined } = {},
  ): StepError => new StepError(code, providerWords(what, key, told), { retryable: more.outage ?? false, ...more });
  const outage = (code: string, what: string): StepError =>
    fail(code, what, { outage: true, retry_after_ms: retryAfter(headers, words) });
  if (exceeded === "first_token")
    return outage("provider_down", `${model} said nothing for ${limits.first_token_ms / 1000} s`);
  if (exceeded === "reply")
    return outage("provider_down", `the reply of ${model} took longer than ${limits.reply_ms / 1000} s`);
  const answer = `${status === undefined ? "" : ` (${status})`}${reason}`;
  if (status === 429 || status === 529) return outage("rate_limited", `the provider asks to slow down${answer}`);
  if (status === undefined || status < 100)
    return fits(TOO_LARGE, words)
      ? fail("context_too_large", `the request does not fit into the window of ${model}${answer}`)
      : outage("provider_down", `the connection to the provider of ${model} failed${reason}`);
  if (status === 408 || status === 409 || status === 425 || status >= 500)
    return outage("provider_down", `the provider of ${model} cannot be reached or failed${answer}`);
  if (status === 413 || fits(TOO_LARGE, words))
    return fail("context_too_large", `the request does not fit into the window of ${model}${answer}`);
  if (status === 401 || status === 403 || fits(BAD_KEY, words))
    return fail("model_auth", `the provider refused the key${answer}`);
  if (fits(REFUSED, words)) return fail("model_refused", `${model} refuses to answer this${answer}`);
  return fail("model_rejected", `the provider rejected the request${answer}`);
}

const errorBody = z.object({ error: z.union([z.string(), z.object({ message: z.string() })]) });
const messageBody = z.object({ message: z.string() });

/** The provider's own words in the body of an answer, where it has some. */
function reasonIn(words: string): string {
  const parsed = parse(words);
  if (parsed === undefined) return words === "" || /^\s*</.test(words) ? "" : `: ${words}`;
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
function retryAfter(headers: Readonly<Record<string, string>> | undefined, words: string): number | undefined {
  const inMs = Number(headers?.["retry-after-ms"]);
  const asked = headers?.["retry-after"];
  const delay = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(words)?.[1];
  const ms =
    inMs > 0
      ? inMs
      : asked !== undefined
        ? /^\d+(\.\d+)?$/.test(asked)
          ? Number(asked) * 1000
          : Date.parse(asked) - Date.now()
        : Number(delay) * 1000;
  return ms > 0 ? Math.min(ms, LONGEST_RETRY_AFTER_MS) : undefined;
}

/** What was thrown by, or told in a stream of, one of the providers' packages. */
export function sdkFailure(thrown: unknown): ProviderFailure {
  if (!isObject(thrown)) return { words: String(thrown) };
  const error = thrown as Record<string, unknown>;
  const status = [error["statusCode"], error["status"], error["code"]].find(
    // A stream that breaks off has the status with which it began.
    (value): value is number => typeof value === "number" && value >= 400,
  );
  const body = error["responseBody"];
  const message = typeof error["message"] === "string" ? error["message"] : "";
  const type =
    typeof error["type"] === "string" ? error["type"] : typeof error["code"] === "string" ? error["code"] : "";
  return {
    status: status ?? statusOf(type, error["name"]),
    headers: error["responseHeaders"] as Record<string, string> | undefined,
    words: typeof body === "string" && body !== "" ? body : `${message}${causeOf(error["cause"])}`,
  };
}

/** An error that a stream tells has a word for what would be a status. */
function statusOf(type: string, name: unknown): number | undefined {
  if (/rate_limit|quota|exhausted/i.test(type)) return 429;
  if (/overloaded/i.test(type)) return 529;
  if (/invalid_request|not_found|invalid_prompt/i.test(type)) return 400;
  // The package itself does not take the request; nothing was sent.
  if (
    name === "AI_InvalidPromptError" ||
    name === "AI_UnsupportedFunctionalityError" ||
    name === "AI_InvalidArgumentError"
  )
    return 400;
  return undefined;
}

/** A failed connection says what failed in its cause only. */
function causeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "";
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
  return code === "" ? "" : ` (${code})`;
}
