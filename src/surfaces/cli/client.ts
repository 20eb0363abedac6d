import type { Socket } from "socket.io-client";
import { z } from "zod";
import { redactUrl } from "../../domain/redact.ts";

export type ClientOptions = { url: string; token: string | undefined };

const problemSchema = z.object({ detail: z.string() });

/** An error for the person at the terminal: one line, and what the program's exit code is to be. */
export class CommandError extends Error {
  readonly exit_code: number;
  constructor(message: string, exit_code = 1) {
    super(message);
    this.exit_code = exit_code;
  }
}

/** No server answers, or no longer. */
export class UnreachableError extends CommandError {}

/** The HTTP API and its sockets, as the commands use them. */
export class ApiClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  get url(): string {
    return this.#options.url;
  }

  get<Answer>(
    schema: z.ZodType<Answer>,
    path: string,
    query: Record<string, string | number | undefined> = {},
  ): Promise<Answer> {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)])).toString();
    return this.#call(schema, "GET", search ? `${path}?${search}` : path);
  }

  post<Answer>(schema: z.ZodType<Answer>, path: string, body: unknown = {}): Promise<Answer> {
    return this.#call(schema, "POST", path, body);
  }

  put<Answer>(schema: z.ZodType<Answer>, path: string, body: unknown): Promise<Answer> {
    return this.#call(schema, "PUT", path, body);
  }

  delete<Answer>(schema: z.ZodType<Answer>, path: string): Promise<Answer> {
    return this.#call(schema, "DELETE", path);
  }

  /** Null where the server answers 404. */
  async find<Answer>(schema: z.ZodType<Answer>, path: string): Promise<Answer | null> {
    const response = await this.#fetch("GET", path);
    return response.status === 404 ? null : this.#checked(schema, path, await this.#read(response));
  }

  async socket(): Promise<Socket> {
    const { io } = await import("socket.io-client");
    const { url, token } = this.#options;
    return io(url, { auth: token === undefined ? {} : { token }, transports: ["websocket"] });
  }

  async #call<Answer>(schema: z.ZodType<Answer>, method: string, path: string, body?: unknown): Promise<Answer> {
    return this.#checked(schema, path, await this.#read(await this.#fetch(method, path, body)));
  }

  /** The answer as it came, with what a newer server says beside what is known here. */
  #checked<Answer>(schema: z.ZodType<Answer>, path: string, answer: unknown): Answer {
    const parsed = schema.safeParse(answer);
    if (parsed.success) return answer as Answer;
    const [issue] = parsed.error.issues;
    const where = issue?.path.join(".") || "it";
    throw new CommandError(
      `${redactUrl(this.url)} answers ${path} in a way that this version does not know (${where}: ${issue?.message}); see that it is an Everstep of the same version`,
    );
  }

  async #fetch(method: string, path: string, body?: unknown): Promise<Response> {
    const { url, token } = this.#options;
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    try {
      return await fetch(new URL(path, url), {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch {
      throw new UnreachableError(
        `nothing answers at ${redactUrl(url)}; start it with \`everstep serve\`, or name another place with --url`,
      );
    }
  }

  async #read(response: Response): Promise<unknown> {
    const text = await response.text().catch(() => {
      throw new UnreachableError(`${redactUrl(this.url)} broke off its answer`);
    });
    if (response.ok) return parseOrNull(text);
    const problem = problemSchema.safeParse(parseOrNull(text));
    const detail = problem.success ? problem.data.detail : `the server answered ${response.status}`;
    throw new CommandError(response.status === 401 ? `${detail}; set EVERSTEP_TOKEN or use --token` : detail);
  }
}

function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
