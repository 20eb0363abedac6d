import { isObject, type JsonObject } from "../../domain/json.ts";

/** A model call's usage. `input_tokens` includes `cached_tokens` and `cache_write_tokens`. */
export type ModelUsage = {
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cache_write_tokens: number;
  /** Whether figures are estimated: the provider reported none, or was cut off first. */
  estimated: boolean;
  /** What the provider charged, if it reports that. */
  cost_usd?: number;
};

export const NO_USAGE: ModelUsage = {
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  estimated: false,
};

/** The most characters a single token may have. */
const SHORT = 16;

/** About four characters of English make a token. */
const estimateTokens = (characters: number): number => Math.ceil(characters / 4);

/**
 * Reads a call's usage from the provider's events as they arrive, so that the usage of an aborted call is known as far as it
 * was reported.
 */
export class UsageReader {
  #input: number | undefined;
  #output: number | undefined;
  #cached = 0;
  #cache_write = 0;
  #cost: number | undefined;
  #hasBegun = false;

  /** Whether the provider sent anything; before that no usage is known. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  read(event: unknown): void {
    this.#hasBegun = true;
    if (!isObject(event)) return;
    const { usage, usageMetadata, message, response } = event;
    if (isObject(usage) && "prompt_tokens" in usage) this.#readChat(usage);
    else if (isObject(usage)) this.#readAnthropic(usage, false);
    if (isObject(usageMetadata)) this.#readGoogle(usageMetadata);
    if (isObject(message) && isObject(message["usage"])) this.#readAnthropic(message["usage"], true);
    if (isObject(response) && isObject(response["usage"])) this.#readResponses(response["usage"]);
  }

  /** Estimates what the provider does not report, from the characters sent and received. */
  usage(sentCharacters: () => number, receivedCharacters: number): ModelUsage {
    if (!this.#hasBegun) return NO_USAGE;
    // Some servers always report one output token.
    const output = (this.#output ?? 0) <= 1 && receivedCharacters > SHORT ? undefined : this.#output;
    return {
      input_tokens: this.#input || estimateTokens(sentCharacters()),
      output_tokens: output ?? estimateTokens(receivedCharacters),
      cached_tokens: this.#cached,
      cache_write_tokens: this.#cache_write,
      estimated: !this.#input || output === undefined,
      ...(this.#cost === undefined ? {} : { cost_usd: this.#cost }),
    };
  }

  /** `prompt_tokens` includes cached tokens. */
  #readChat(usage: JsonObject): void {
    this.#input = count(usage["prompt_tokens"]) ?? this.#input;
    this.#output = count(usage["completion_tokens"]) ?? this.#output;
    this.#cached = detail(usage["prompt_tokens_details"], "cached_tokens") ?? this.#cached;
    this.#cost = count(usage["cost"]) ?? this.#cost;
  }

  #readResponses(usage: JsonObject): void {
    this.#input = count(usage["input_tokens"]) ?? this.#input;
    this.#output = count(usage["output_tokens"]) ?? this.#output;
    this.#cached = detail(usage["input_tokens_details"], "cached_tokens") ?? this.#cached;
  }

  /** `input_tokens` excludes cached tokens. The opening event's output count is preliminary. */
  #readAnthropic(usage: JsonObject, isOpening: boolean): void {
    const cached = count(usage["cache_read_input_tokens"]);
    const written = count(usage["cache_creation_input_tokens"]);
    const plain = count(usage["input_tokens"]);
    if (plain !== undefined) {
      this.#cached = cached ?? this.#cached;
      this.#cache_write = written ?? this.#cache_write;
      this.#input = plain + this.#cached + this.#cache_write;
    }
    if (!isOpening) this.#output = count(usage["output_tokens"]) ?? this.#output;
  }

  #readGoogle(usage: JsonObject): void {
    this.#input = count(usage["promptTokenCount"]) ?? this.#input;
    this.#cached = count(usage["cachedContentTokenCount"]) ?? this.#cached;
    const answer = count(usage["candidatesTokenCount"]);
    const thoughts = count(usage["thoughtsTokenCount"]);
    if (answer !== undefined || thoughts !== undefined) this.#output = (answer ?? 0) + (thoughts ?? 0);
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;

const detail = (details: unknown, name: string): number | undefined =>
  isObject(details) ? count(details[name]) : undefined;
