import { ApiError } from "../../data/api.ts";

/** What the server rejected, by field; "" is the form as a whole. */
export function problemsIn(error: unknown): Map<string, string> {
  if (!(error instanceof ApiError)) return new Map([["", error instanceof Error ? error.message : String(error)]]);
  const fields = error.errors.map(({ path, message }): [string, string] => [path, message]);
  return new Map([["", error.message], ...fields]);
}
