import fastify from "fastify";
import type { App } from "./context.ts";
import { docsPage, docsScript } from "./pages.ts";
import { answerWith, type StaticFile, staticFile } from "./static-file.ts";

const TYPE = "text/javascript; charset=utf-8";
/** Where the package serves its script. */
const SCRIPT = "/js/scalar.js";

/**
 * `/docs`: a reference with calls to try. Its files are public like the console's; the description it shows is not. The page
 * has no inline script, so that the content security policy needs no exception.
 */
export function apiReference(app: App): void {
  const open = { schema: { hide: true }, config: { open: true } };
  // Loaded on first use: its script is 4 MB, and most servers start without a reader.
  let loading: Promise<StaticFile> | undefined;
  app.get("/docs", open, (_request, reply) => reply.type("text/html").send(docsPage));
  app.get("/docs.js", open, (_request, reply) => reply.type("text/javascript").send(docsScript));
  app.get("/docs/reference.js", open, async ({ headers }, reply) => {
    loading ??= loadReference();
    const answer = answerWith(await loading, headers, "no-cache");
    return reply.code(answer.status).headers(answer.headers).send(answer.body);
  });
}

/** The package only serves its script through its plugin. Its page, which has an inline script, is not used. */
async function loadReference(): Promise<StaticFile> {
  const { default: plugin } = await import("@scalar/fastify-api-reference");
  await using app = fastify();
  await app.register(plugin, { routePrefix: "/", configuration: { content: {} } });
  const { statusCode, rawPayload } = await app.inject(SCRIPT);
  if (statusCode !== 200) throw new Error(`@scalar/fastify-api-reference answers ${statusCode} for its script`);
  return staticFile(TYPE, rawPayload);
}
