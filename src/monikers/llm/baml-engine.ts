import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  BamlClientFinishReasonError,
  BamlClientHttpError,
  BamlCtxManager,
  BamlRuntime,
  BamlTimeoutError,
  BamlValidationError,
  ClientRegistry,
  Collector,
  setLogLevel,
  toBamlError,
} from "@boundaryml/baml";
import { z } from "zod";
import { StepError } from "../moniker.ts";
import { callReport } from "./call-report.ts";
import type { Model } from "./model.ts";
import { providerWords } from "./provider-words.ts";

const PROMPTS = fileURLToPath(new URL("./prompts/", import.meta.url));

/** `estimated`: whether the tokens are only an estimate. */
type Used = { tokens: number; estimated: boolean };
export type Completion = Used & { text: string };
export type CompletionOptions = {
  signal: AbortSignal /** Gets the whole reply so far, again and again. */;
  onPartial?: (reply: string) => void;
  /** Told where a call fails and something was used nevertheless. */
  onWasted?: (used: Used) => void;
};

export type EngineLimits = {
  /** Milliseconds until the first token. 60,000 by default. */
  first_token_ms: number;
  /** Milliseconds for a whole reply. 600,000 by default. */
  reply_ms: number;
};
const DEFAULT_LIMITS: EngineLimits = { first_token_ms: 60_000, reply_ms: 600_000 };

/**
 * BAML behind one small door: prompts are `.baml` files, providers its adapters. Functions return text; what is in the
 * text is read by us, since its typed parsing is quadratic for large states. Retries are the runner's.
 */
export class BamlEngine {
  readonly #runtime: BamlRuntime;
  readonly #contexts: BamlCtxManager;
  readonly #model: Model;
  readonly #limits: EngineLimits;

  constructor(model: Model, limits: Partial<EngineLimits> = {}) {
    // Its default prints prompts and replies.
    setLogLevel("OFF");
    const files = readdirSync(PROMPTS).filter((name) => name.endsWith(".baml"));
    const sources = Object.fromEntries(files.map((name) => [name, readFileSync(join(PROMPTS, name), "utf8")]));
    this.#runtime = BamlRuntime.fromFiles(PROMPTS, sources, {});
    this.#contexts = new BamlCtxManager(this.#runtime);
    this.#model = model;
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
  }

  async complete(
    name: string,
    args: Record<string, string>,
    { signal, onPartial, onWasted }: CompletionOptions,
  ): Promise<Completion> {
    signal.throwIfAborted();
    const asked = JSON.stringify(args);
    const safe = Object.fromEntries(Object.entries(args).map(([key, text]) => [key, withoutDelimiters(text)]));
    const usage = new Collector("step");
    const silence = new AbortController();
    const stream = this.#runtime.streamFunction(
      name,
      safe,
      undefined,
      this.#contexts.cloneContext(),
      undefined,
      this.#clients(),
      [usage],
      {},
      {},
      AbortSignal.any([signal, silence.signal]),
      undefined,
    );
    const timer = setTimeout(() => silence.abort(), this.#limits.first_token_ms);
    stream.onEvent((error, result) => {
      if (error || !result.isOk()) return;
      clearTimeout(timer);
      onPartial?.(String(result.parsed(true)));
    });
    try {
      const result = await stream.done(this.#contexts.cloneContext());
      const text = String(result.parsed(false));
      const report = callReport(usage, asked);
      // Not every adapter minds the list of finish reasons.
      if (report?.is_truncated) throw truncated();
      onPartial?.(text);
      return { text, ...(report ?? reportedUse(usage, asked, text)) };
    } catch (error) {
      const wasted = callReport(usage, asked);
      if (wasted) onWasted?.(wasted);
      if (error instanceof StepError) throw error;
      throw toStepError(error, {
        told: Object.values(args),
        cancelled: signal.aborted,
        silent: silence.signal.aborted,
        limits: this.#limits,
        key: this.#model.options["api_key"],
        retry_after_ms: retryAfter(usage),
      });
    } finally {
      clearTimeout(timer);
      stream.onEvent(undefined);
    }
  }

  /** A new one for each call: static clients reuse the previous caller's key. */
  #clients(): ClientRegistry {
    const clients = new ClientRegistry();
    const { provider, options } = this.#model;
    clients.addLlmClient("model", provider, {
      ...options,
      finish_reason_deny_list: ["length", "max_tokens"],
      http: {
        connect_timeout_ms: 10_000,
        request_timeout_ms: this.#limits.reply_ms,
        idle_timeout_ms: this.#limits.first_token_ms,
      },
    });
    clients.setPrimary("model");
    return clients;
  }
}

/**
 * BAML marks where a role or an image begins with words in the finished prompt. A text that has them would speak as the system, or
 * have something fetched.
 */
const withoutDelimiters = (text: string): string => text.replaceAll("MAGIC_STRING_DELIMITER", "MAGIC-STRING-DELIMITER");

/** About four characters of English make a token. */
const estimate = (text: string): number => Math.ceil(text.length / 4);

/** For a reply that did not come as a stream. */
function reportedUse({ usage }: Collector, asked: string, replied: string): Used {
  const { inputTokens, outputTokens } = usage;
  if (inputTokens && outputTokens) return { tokens: inputTokens + outputTokens, estimated: false };
  return { tokens: estimate(asked) + estimate(replied), estimated: true };
}

const truncated = (): StepError =>
  new StepError("truncated", "the model's reply was cut off at its length limit", { retryable: false });

type Circumstances = {
  cancelled: boolean;
  silent: boolean;
  limits: EngineLimits;
  key: unknown;
  /** What the model was told, which must not come back in an error. */
  told: string[];
  retry_after_ms: number | undefined;
};

const LONGEST_RETRY_AFTER_MS = 600_000;
const headersSchema = z.object({ "retry-after": z.string().optional() });

/** What the provider's `Retry-After` asks for: seconds, or a date. */
function retryAfter({ last }: Collector): number | undefined {
  const headers = headersSchema.safeParse(last?.calls.at(-1)?.httpResponse?.headers);
  const asked = headers.success ? headers.data["retry-after"] : undefined;
  if (asked === undefined) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(asked) ? Number(asked) * 1000 : Date.parse(asked) - Date.now();
  return ms > 0 ? Math.min(ms, LONGEST_RETRY_AFTER_MS) : undefined;
}

const refusalSchema = z.object({ error: z.object({ message: z.string() }) });

/** The provider's own words in the body of a refusal, where it has some. */
function reasonIn(body: string | undefined): string {
  try {
    const refusal = refusalSchema.safeParse(JSON.parse(body ?? ""));
    return refusal.success ? `: ${refusal.data.error.message}` : "";
  } catch {
    return "";
  }
}

/** What went wrong, and whether trying again can help. */
function toStepError(thrown: unknown, circumstances: Circumstances): StepError {
  const { cancelled, silent, limits, key, told, retry_after_ms } = circumstances;
  const error = toBamlError(thrown);
  const fail = (code: string, message: string, retryable: boolean) =>
    new StepError(code, providerWords(message, key, told), {
      retryable,
      retry_after_ms,
      cause: new Error(providerWords(error.message, key, told)),
    });
  if (cancelled) return fail("cancelled", "the call was cancelled", false);
  if (silent) return fail("timeout", `the model said nothing for ${limits.first_token_ms} ms`, true);
  if (error instanceof BamlTimeoutError) return fail("timeout", "the model took too long", true);
  if (error instanceof BamlClientFinishReasonError) return truncated();
  if (error instanceof BamlValidationError) return fail("bad_output", "the model's reply cannot be used", false);
  if (error instanceof BamlClientHttpError) {
    const { status_code: status } = error;
    const answer = `(${status})${reasonIn(error.raw_response)}`;
    if (status === 401 || status === 403) return fail("auth", `the provider refused the key ${answer}`, false);
    if (status === 429) return fail("rate_limit", `the provider asks to slow down ${answer}`, true);
    if (status === 408 || status === 504) return fail("timeout", `the provider timed out (${status})`, true);
    if (status >= 400 && status < 500) return fail("rejected", `the provider rejected the request ${answer}`, false);
    // What is no status of HTTP is the engine's own number for a connection that failed.
    if (status < 100) return fail("unavailable", "the connection to the provider failed", true);
    return fail("unavailable", `the provider cannot be reached or failed ${answer}`, true);
  }
  return fail("unavailable", `the model could not be called: ${error.message}`, true);
}
