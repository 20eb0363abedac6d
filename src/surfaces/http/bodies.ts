import type { App } from "./context.ts";
import { type FieldProblem, invalid } from "./problem.ts";

/** The deepest nesting of a body. Monikers may return deeper values, so that they can wrap their input. */
const DEEPEST = 200;

/**
 * A request without a body may still claim to send JSON.
 *
 * BODY-1  Accepted values are kept exactly. Bytes that are not UTF-8 would be read as other characters, and numbers out of
 *         range as infinity, which JSON cannot express: both are refused. Escaped zero characters and lone surrogates are kept.
 * BODY-2  A body with excessive nesting is refused.
 */
export function readBodies(app: App): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    if (body.length === 0) return done(null, undefined);
    const text = decode(body as Buffer);
    if (text === null) return done(invalid([{ path: "", message: "must be UTF-8" }]));
    void parse(request, text, (error, parsed: unknown) => {
      const problem = error ? null : problemIn(parsed, []);
      if (problem) done(invalid([problem]));
      else done(error, parsed);
    });
  });
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true });

function decode(bytes: Buffer): string | null {
  try {
    return UTF_8.decode(bytes);
  } catch {
    return null;
  }
}

/** The first value that cannot be kept, and its path. */
function problemIn(value: unknown, path: string[]): FieldProblem | null {
  if (typeof value === "number" && !Number.isFinite(value))
    return { path: path.join("."), message: "is a number out of range" };
  if (typeof value !== "object" || value === null) return null;
  if (path.length === DEEPEST) return { path: "", message: `must not be nested more than ${DEEPEST} deep` };
  for (const key in value) {
    path.push(key);
    const problem = problemIn((value as Record<string, unknown>)[key], path);
    if (problem) return problem;
    path.pop();
  }
  return null;
}
