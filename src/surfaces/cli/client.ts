import type { z } from "zod";
import {
  type CallOptions,
  ClientError,
  EverstepClient,
  type Query,
  type SessionEvent,
  type SessionFollowOptions,
} from "../../client/client.ts";
import { redactUrl } from "../../domain/redact.ts";
import { asTyped, shellWord } from "./as-typed.ts";

export type ApiClientOptions = {
  url: string;
  token: string | undefined;
  /** The address that commands use by default. */
  default_url: string;
};

/** Generous: a page of steps with large states takes a while. */
const TIMEOUT_MS = 120_000;

/** An error for the person at the terminal: one line, and the exit code. */
export class CommandError extends Error {
  readonly exit_code: number;
  constructor(message: string, exit_code = 1) {
    super(message);
    this.exit_code = exit_code;
  }
}

/** The server as commands use it: responses are checked, errors and hints are for the person at the terminal. */
export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #client: EverstepClient;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#client = new EverstepClient({ ...options, timeout_ms: TIMEOUT_MS });
  }

  get url(): string {
    return this.#options.url;
  }

  /** A command to copy and paste, for the same server. */
  hint(...words: string[]): string {
    const { url, default_url } = this.#options;
    const place = url === default_url ? [] : ["--url", redactUrl(url)];
    return [asTyped(), ...words.map(shellWord), ...place].join(" ");
  }

  get<Answer>(schema: z.ZodType<Answer>, path: string, query: Query = {}, options: CallOptions = {}): Promise<Answer> {
    return this.#checked(schema, path, () => this.#client.call("GET", path, { query, ...options }));
  }

  post<Answer>(
    schema: z.ZodType<Answer>,
    path: string,
    body: unknown = {},
    options: CallOptions = {},
  ): Promise<Answer> {
    return this.#checked(schema, path, () => this.#client.call("POST", path, { body, ...options }));
  }

  put<Answer>(schema: z.ZodType<Answer>, path: string, body: unknown): Promise<Answer> {
    return this.#checked(schema, path, () => this.#client.call("PUT", path, { body }));
  }

  delete<Answer>(schema: z.ZodType<Answer>, path: string): Promise<Answer> {
    return this.#checked(schema, path, () => this.#client.call("DELETE", path));
  }

  /** An idempotent request by one of the client's own methods. */
  submit<Answer>(schema: z.ZodType<Answer>, send: (client: EverstepClient) => Promise<unknown>): Promise<Answer> {
    return this.#checked(schema, "the request", () => send(this.#client));
  }

  /** Null if the server answers 404. */
  async find<Answer>(schema: z.ZodType<Answer>, path: string): Promise<Answer | null> {
    return this.#checked(schema.nullable(), path, async () => {
      try {
        return await this.#client.call("GET", path);
      } catch (error) {
        if (error instanceof ClientError && error.status === 404) return null;
        throw error;
      }
    });
  }

  /** A session's events. */
  async *events(session_id: string, options: SessionFollowOptions): AsyncGenerator<SessionEvent, void, undefined> {
    try {
      yield* this.#client.events(session_id, options);
    } catch (error) {
      throw this.#forPerson(error);
    }
  }

  /** The response as received, including fields of a newer server. */
  async #checked<Answer>(schema: z.ZodType<Answer>, path: string, ask: () => Promise<unknown>): Promise<Answer> {
    let answer: unknown;
    try {
      answer = await ask();
    } catch (error) {
      throw this.#forPerson(error, path);
    }
    const parsed = schema.safeParse(answer);
    if (parsed.success) return answer as Answer;
    const [issue] = parsed.error.issues;
    throw this.#unexpected(path, `${issue?.path.join(".") || "it"}: ${issue?.message}`);
  }

  #unexpected(path: string, why: string): CommandError {
    return new CommandError(
      `the answer of ${redactUrl(this.url)} to ${path} is not understood (${why}); check that it is an Everstep server of the same version`,
    );
  }

  #forPerson(error: unknown, path = "events"): unknown {
    if (!(error instanceof ClientError)) return error;
    const { code, status, what, next } = error;
    if (code === "answer_unreadable") return this.#unexpected(path, "it: not JSON");
    if (code === "server_unreachable")
      return new CommandError(
        `no server answers at ${redactUrl(this.url)}; start it with \`${asTyped()} serve\`, or pass another address with --url`,
      );
    if (code === "server_timeout") return new CommandError(`${what}; ${next}`);
    return new CommandError(status === 401 ? `${what}; set EVERSTEP_TOKEN or use --token` : what);
  }
}
