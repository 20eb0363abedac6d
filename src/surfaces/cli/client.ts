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
  /** The address that commands find without being told. */
  default_url: string;
};

/** A page of steps with large states takes a while. */
const TIMEOUT_MS = 120_000;

/** An error for the person at the terminal: one line, and what the program's exit code is to be. */
export class CommandError extends Error {
  readonly exit_code: number;
  constructor(message: string, exit_code = 1) {
    super(message);
    this.exit_code = exit_code;
  }
}

/** The server as the commands use it: answers are checked, and errors and hints are for the person at the terminal. */
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

  /** A command that can be typed as it is shown, for the server that this one talks to. */
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

  /** A request that does nothing twice, by one of the client's own methods. */
  submit<Answer>(schema: z.ZodType<Answer>, send: (client: EverstepClient) => Promise<unknown>): Promise<Answer> {
    return this.#checked(schema, "the request", () => send(this.#client));
  }

  /** Null where the server answers 404. */
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

  /** What happens to a session. */
  async *events(session_id: string, options: SessionFollowOptions): AsyncGenerator<SessionEvent, void, undefined> {
    try {
      yield* this.#client.events(session_id, options);
    } catch (error) {
      throw this.#forPerson(error);
    }
  }

  /** The answer as it came, with what a newer server says beside what is known here. */
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
    throw this.#strange(path, `${issue?.path.join(".") || "it"}: ${issue?.message}`);
  }

  #strange(path: string, why: string): CommandError {
    return new CommandError(
      `${redactUrl(this.url)} answers ${path} in a way that this version does not know (${why}); see that it is an Everstep of the same version`,
    );
  }

  #forPerson(error: unknown, path = "events"): unknown {
    if (!(error instanceof ClientError)) return error;
    const { code, status, what, next } = error;
    if (code === "answer_unreadable") return this.#strange(path, "it: not JSON");
    if (code === "server_unreachable")
      return new CommandError(
        `nothing answers at ${redactUrl(this.url)}; start it with \`${asTyped()} serve\`, or name another place with --url`,
      );
    if (code === "server_timeout") return new CommandError(`${what}; ${next}`);
    return new CommandError(status === 401 ? `${what}; set EVERSTEP_TOKEN or use --token` : what);
  }
}
