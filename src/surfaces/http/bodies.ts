import type { App } from "./context.ts";
import { invalid } from "./problem.ts";

/** Levels of lists and objects in a body. What monikers may return is deeper, so that they can wrap what they were told. */
const DEEPEST = 200;

/** A request without a body may still say that it sends JSON; one that is nested without end is refused. */
export function readBodies(app: App): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") return done(null, undefined);
    void parse(request, body as string, (error, parsed: unknown) => {
      if (error || !isDeeperThan(parsed, DEEPEST)) return done(error, parsed);
      done(invalid([{ path: "", message: `must not be nested more than ${DEEPEST} deep` }]));
    });
  });
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1));
}
