import { ClientError, EverstepClient, type FieldError, type Query } from "../../../src/client/client.ts";
import { currentToken, tokenRefused } from "./token.ts";

const server = new EverstepClient({ token: currentToken });

/** An error answered by the server, in its words. */
export class ApiError extends Error {
  readonly status: number;
  readonly errors: readonly FieldError[];

  constructor(status: number, detail: string, errors: readonly FieldError[] = []) {
    super(detail);
    this.status = status;
    this.errors = errors;
  }
}

/** A path under /api; the parts are escaped. */
export const pathOf = (...parts: string[]): string => `/api/${parts.map(encodeURIComponent).join("/")}`;

export const get = <Answer>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Answer> =>
  ask((client) => client.call("GET", path, { query, signal })) as Promise<Answer>;

export const post = <Answer>(path: string, body: unknown = {}): Promise<Answer> =>
  ask((client) => client.call("POST", path, { body })) as Promise<Answer>;

export const put = <Answer>(path: string, body: unknown): Promise<Answer> =>
  ask((client) => client.call("PUT", path, { body })) as Promise<Answer>;

export const remove = (path: string): Promise<unknown> => ask((client) => client.call("DELETE", path));

const UNREACHABLE = "The server cannot be reached. Check that it is running and that you are online, then try again.";

/** Calls a method of the client and translates its errors. */
export async function ask<Answer>(call: (client: EverstepClient) => Promise<Answer>): Promise<Answer> {
  try {
    return await call(server);
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    // The client's message names an address and a command, which do not help somebody at a browser.
    if (error.code === "server_unreachable") throw new Error(UNREACHABLE, { cause: error });
    if (error.status === null) throw error;
    if (error.status === 401) tokenRefused();
    throw new ApiError(error.status, error.what, error.errors);
  }
}
