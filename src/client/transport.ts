import { Backoff } from "../concurrency/backoff.ts";
import { redactUrl } from "../domain/redact.ts";
import { ClientError, refusal } from "./client-error.ts";

/** The token, or a function that returns the current one. */
export type TokenSource = string | undefined | (() => string | null | undefined);

export type TransportOptions = {
  /** The server's address, with or without a path before `/api`. */
  url: string;
  token?: TokenSource;
  /** Time limit of each attempt in milliseconds; 0: no limit. */
  timeout_ms: number;
  /** How often a repeatable call is retried if no response came. */
  retries: number;
};

export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
type QueryValue = string | number | boolean | undefined;

export type CallOptions = {
  signal?: AbortSignal | undefined;
  /** Overrides the client's own; 0: no limit. */
  timeout_ms?: number;
};
type Call = CallOptions & {
  query?: Query | undefined;
  body?: unknown;
  /** Whether it may be sent again if no response came. GET and PUT always may. */
  is_repeatable?: boolean;
};

const RETRY_MS = 100;
const LONGEST_RETRY_MS = 2000;
const REPEATABLE: ReadonlySet<string> = new Set(["GET", "PUT"]);

/** HTTP calls to one server. It needs only `fetch`, so it runs in Node and in browsers. */
export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = { ...options, url: options.url.replace(/\/+$/, "") };
  }

  get url(): string {
    return this.#options.url;
  }

  get retries(): number {
    return this.#options.retries;
  }

  /** The parsed response, null if empty. Throws `ClientError`, or the signal's reason. */
  async call(method: string, path: string, call: Call = {}): Promise<unknown> {
    const isRepeatable = call.is_repeatable ?? REPEATABLE.has(method);
    const backoff = new Backoff(RETRY_MS, LONGEST_RETRY_MS);
    for (let left = isRepeatable ? this.retries : 0; ; left -= 1)
      try {
        return await this.#once(method, path, call);
      } catch (error) {
        if (left === 0 || !isWorthRepeating(error)) throw error;
        await backoff.wait(call.signal);
      }
  }

  /** A response whose body is still to come. Throws like `call`. */
  async open(path: string, query: Query, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const response = await this.#fetch(path, query, { headers: { ...this.#headers(), ...headers }, signal }, signal);
    if (response.ok) return response;
    throw refusal(response, await response.text().catch(() => ""));
  }

  async #once(method: string, path: string, { query, body, signal, timeout_ms }: Call): Promise<unknown> {
    const limit_ms = timeout_ms ?? this.#options.timeout_ms;
    const limit = limit_ms > 0 ? AbortSignal.timeout(limit_ms) : null;
    const signals = [limit, signal].filter((one) => one != null);
    const request = {
      method,
      headers: { ...this.#headers(), ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signals.length > 0 ? { signal: AbortSignal.any(signals) } : {}),
    };
    try {
      const response = await this.#fetch(path, query ?? {}, request, signal);
      const text = await response.text().catch((cause: unknown) => {
        signal?.throwIfAborted();
        throw this.#unreachable("broke off its answer", cause);
      });
      if (!response.ok) throw refusal(response, text);
      return text === "" ? null : this.#parsed(text, path);
    } catch (error) {
      if (!limit?.aborted || signal?.aborted) throw error;
      const what = `${redactUrl(this.url)} did not answer within ${limit_ms} ms`;
      throw new ClientError("server_timeout", what, "try again, or allow more time", { cause: error });
    }
  }

  async #fetch(path: string, query: Query, request: RequestInit, signal: AbortSignal | undefined): Promise<Response> {
    try {
      return await fetch(`${this.url}${path}${searchOf(query)}`, request);
    } catch (cause) {
      signal?.throwIfAborted();
      throw this.#unreachable("does not answer", cause);
    }
  }

  #unreachable(what: string, cause: unknown): ClientError {
    const next = "check that the server runs there, or use another address";
    return new ClientError("server_unreachable", `${redactUrl(this.url)} ${what}`, next, { cause });
  }

  #parsed(text: string, path: string): unknown {
    try {
      return JSON.parse(text);
    } catch (cause) {
      const what = `the answer of ${redactUrl(this.url)} to ${path} is not JSON`;
      throw new ClientError("answer_unreadable", what, "check that it is an Everstep server", { cause });
    }
  }

  #headers(): Record<string, string> {
    const { token } = this.#options;
    const current = typeof token === "function" ? token() : token;
    return current == null ? {} : { authorization: `Bearer ${current}` };
  }
}

/** No response came, or one that says the server is not ready. A timeout is not retried. */
const isWorthRepeating = (error: unknown): boolean =>
  error instanceof ClientError &&
  (error.code === "server_unreachable" || (error.status !== null && error.status > 501 && error.status < 505));

function searchOf(query: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of [value].flat()) if (one !== undefined) search.append(name, String(one));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
