import { currentToken, tokenRefused } from "./token.ts";

/** What the server said was wrong, in its own words. */
export class ApiError extends Error {
  readonly status: number;
  readonly errors: { path: string; message: string }[];

  constructor(status: number, detail: string, errors: { path: string; message: string }[] = []) {
    super(detail);
    this.status = status;
    this.errors = errors;
  }
}

type Query = Record<string, string | number | boolean | readonly string[] | undefined>;

/** A path under /api whose parts are data, whatever they contain. */
export const pathOf = (...parts: string[]): string => `/api/${parts.map(encodeURIComponent).join("/")}`;

export function get<Answer>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Answer> {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of [value].flat()) search.append(name, String(one));
  }
  const asked = search.size > 0 ? `${path}?${search}` : path;
  return request<Answer>("GET", asked, undefined, signal);
}

export const post = <Answer>(path: string, body: unknown = {}): Promise<Answer> => request<Answer>("POST", path, body);
export const put = <Answer>(path: string, body: unknown): Promise<Answer> => request<Answer>("PUT", path, body);
export const remove = (path: string): Promise<unknown> => request("DELETE", path);

async function request<Answer>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer> {
  const token = currentToken();
  const response = await fetch(path, {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  if (response.status === 401) tokenRefused();
  const text = await response.text();
  if (!response.ok) throw problemIn(response.status, text);
  return (text === "" ? null : JSON.parse(text)) as Answer;
}

function problemIn(status: number, text: string): ApiError {
  try {
    const { detail, errors } = JSON.parse(text) as { detail: string; errors?: ApiError["errors"] };
    return new ApiError(status, detail, errors);
  } catch {
    return new ApiError(status, `the server answered ${status}`);
  }
}
