import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { App } from "./context.ts";
import { noConsolePage } from "./pages.ts";
import { answerWith, type StaticFile, staticFile } from "./static-file.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
/** The console's own pages, all served by the same file. */
const PAGES = [
  "/",
  "/agents",
  "/inbox",
  "/start",
  "/search",
  "/system",
  "/webhooks",
  "/costs",
  "/tools",
  "/monikers",
  "/sessions",
  "/conversations",
  "/compare",
];

/** The web console's built files. They are public; the data they show is not. */
export function consoleFiles(app: App, folder: string): void {
  const read = cached(readConsoleFile);
  const assets = join(folder, "assets");
  const open = { schema: { hide: true }, config: { open: true } };

  app.get<{ Params: { name: string } }>("/assets/:name", open, async ({ params: { name }, headers }, reply) => {
    const file = (await namesIn(assets)).includes(name) ? await read(join(assets, name)) : null;
    if (!file) return reply.callNotFound();
    // The name contains a digest of the content.
    const answer = answerWith(file, headers, "public, max-age=31536000, immutable");
    return reply.code(answer.status).headers(answer.headers).send(answer.body);
  });

  for (const page of PAGES.flatMap((path) => (path === "/" ? [path] : [path, `${path}/*`])))
    app.get(page, open, async ({ headers }, reply) => {
      const index = await readConsoleFile(join(folder, "index.html"));
      if (!index) return reply.type("text/html").send(noConsolePage);
      const answer = answerWith(index, headers, "no-cache");
      return reply.code(answer.status).headers(answer.headers).send(answer.body);
    });
}

/** Names are looked up, not trusted, so that no request leads out of the folder. */
const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

async function readConsoleFile(path: string): Promise<StaticFile | null> {
  const body = await readFile(path).catch(() => null);
  if (!body) return null;
  return staticFile(TYPES[extname(path)] ?? "application/octet-stream", body);
}

/** Caches files, whose names contain a digest of their content. */
function cached(read: (path: string) => Promise<StaticFile | null>): typeof read {
  const cache = new Map<string, StaticFile>();
  return async (path) => {
    const file = cache.get(path) ?? (await read(path));
    if (file) cache.set(path, file);
    return file;
  };
}
