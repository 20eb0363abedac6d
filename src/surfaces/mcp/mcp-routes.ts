import type { FastifyError, FastifyRequest } from "fastify";
import type { Routes } from "../http/context.ts";
import { Problem } from "../http/problem.ts";
import { toProblem } from "../http/to-problem.ts";
import type { McpHandler } from "./mcp-handler.ts";

const PATH = "/mcp";
const METADATA = "/.well-known/oauth-protected-resource";
/** JSON-RPC's codes for a body that is not JSON, and for a request refused before it is parsed. */
const PARSE_ERROR = -32700;
const REFUSED = -32000;

/** The MCP server: Streamable HTTP without sessions, the current and the 2025 revision. */
export const mcpRoutes: Routes = (app, context) => {
  // Its packages are loaded on the first request: most servers never get one and start faster without.
  let loading: Promise<McpHandler> | undefined;
  const load = async () => (await import("./mcp-handler.ts")).newMcpHandler(context, app.log);
  const handler = () => (loading ??= load());
  app.addHook("preClose", async () => (await loading)?.close());
  void app.register(async (scope) => {
    scope.setErrorHandler((error: FastifyError, request, reply) => {
      const { status, message, retry_after_s } = toProblem(error);
      if (status >= 500) request.log.error({ err: error }, "an MCP request failed");
      if (retry_after_s !== undefined) reply.header("retry-after", retry_after_s);
      if (status === 401)
        reply.header("www-authenticate", `Bearer resource_metadata="${originOf(request)}${METADATA}${PATH}"`);
      const code = status === 400 ? PARSE_ERROR : REFUSED;
      return reply.code(status).send({ jsonrpc: "2.0", id: null, error: { code, message } });
    });
    scope.route({
      method: ["GET", "POST", "DELETE"],
      url: PATH,
      schema: { hide: true },
      async handler(request, reply) {
        const { serve } = await handler();
        reply.hijack();
        for (const [name, value] of Object.entries(reply.getHeaders()))
          if (value !== undefined) reply.raw.setHeader(name, value);
        await serve(request.raw, reply.raw, request.body);
      },
    });
  });
  for (const url of [METADATA, `${METADATA}${PATH}`])
    app.get(url, { schema: { hide: true }, config: { open: true } }, (request) => ({
      resource: `${originOf(request)}${PATH}`,
      resource_name: "Everstep",
      bearer_methods_supported: ["header"],
      scopes_supported: [],
    }));
};

/** As the client sees it: a proxy may terminate TLS. */
function originOf({ headers, host, protocol }: FastifyRequest): string {
  const isTls = protocol === "https" || headers["x-forwarded-proto"] === "https";
  if (!/^[\w.:[\]-]+$/.test(host)) throw new Problem(400, "the Host header is not a host");
  return `${isTls ? "https" : "http"}://${host}`;
}
