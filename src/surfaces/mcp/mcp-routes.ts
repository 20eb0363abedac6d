import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  type ServerContext as McpContext,
  type McpRequestContext,
  McpServer,
} from "@modelcontextprotocol/server";
import type { FastifyError, FastifyRequest } from "fastify";
import type { Routes } from "../http/context.ts";
import { Problem } from "../http/problem.ts";
import { toProblem } from "../http/to-problem.ts";
import { addControlTools } from "./control-tools.ts";
import { addLookingTools } from "./looking-tools.ts";
import type { McpParts } from "./mcp-parts.ts";
import { addResources } from "./mcp-resources.ts";
import { addReadingTool } from "./reading-tool.ts";
import { addStartingTools } from "./starting-tools.ts";
import { addTellingTools } from "./telling-tools.ts";

const PATH = "/mcp";
const METADATA = "/.well-known/oauth-protected-resource";
const LARGEST_BODY = 1024 * 1024;
/** JSON-RPC's codes for a body that is no JSON and for what is refused before it is looked at. */
const PARSE_ERROR = -32700;
const REFUSED = -32000;

const INSTRUCTIONS =
  "Everstep runs long-lived agents that survive restarts and can be steered while they run. start_agent starts one, read_session with wait_s waits for it, guide tells it something and answers with a receipt. A session that asks something waits for a person: put the question before them and give their words with answer.";

/**
 * The MCP server: Streamable HTTP without sessions, the current and the 2025 revision. Each request gets a server of its own, so it
 * does not matter which process answers.
 */
export const mcpRoutes: Routes = (app, context) => {
  const handler = createMcpHandler((request) => newServer(context, request), {
    maxRequestBodySize: LARGEST_BODY,
    onerror: (error) => app.log.debug({ err: error }, "an MCP request was refused"),
  });
  const serve = toNodeHandler(handler, { onerror: (error) => app.log.error({ err: error }, "an MCP request failed") });
  app.addHook("preClose", async () => handler.close());
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

/** As the client sees it: a proxy in front may speak TLS for us. */
function originOf({ headers, host, protocol }: FastifyRequest): string {
  const isTls = protocol === "https" || headers["x-forwarded-proto"] === "https";
  if (!/^[\w.:[\]-]+$/.test(host)) throw new Problem(400, "the Host header is not a host");
  return `${isTls ? "https" : "http"}://${host}`;
}

function newServer(parts: McpParts, { era }: McpRequestContext): McpServer {
  const server = new McpServer(
    { name: "everstep", title: "Everstep", version: "0.1.0" },
    { capabilities: { tools: {}, resources: {} }, instructions: INSTRUCTIONS },
  );
  const options = { mayAsk: (call: McpContext) => era === "modern" && canElicit(call) };
  addLookingTools(server, parts);
  addReadingTool(server, parts, options);
  addStartingTools(server, parts);
  addTellingTools(server, parts, options);
  addControlTools(server, parts);
  addResources(server, parts);
  return server;
}

function canElicit({ mcpReq: { envelope } }: McpContext): boolean {
  const capabilities = (envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
  const elicitation = (capabilities as { elicitation?: Record<string, unknown> } | undefined)?.elicitation;
  // A client that names no mode means forms.
  return elicitation !== undefined && ("form" in elicitation || !("url" in elicitation));
}
