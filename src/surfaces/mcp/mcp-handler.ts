import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  type ServerContext as McpContext,
  type McpRequestContext,
  McpServer,
} from "@modelcontextprotocol/server";
import type { FastifyBaseLogger } from "fastify";
import { VERSION } from "../../domain/version.ts";
import { addControlTools } from "./control-tools.ts";
import { addLookingTools } from "./looking-tools.ts";
import type { McpParts } from "./mcp-parts.ts";
import { addResources } from "./mcp-resources.ts";
import { addReadingTool } from "./reading-tool.ts";
import { addStartingTools } from "./starting-tools.ts";
import { addTellingTools } from "./telling-tools.ts";

const LARGEST_BODY = 1024 * 1024;

const INSTRUCTIONS =
  "Everstep runs long-lived agents that survive restarts and can be steered while they run. start_agent starts one, read_session with wait_s waits for it, guide sends it guidance and returns a receipt. A session that asks something waits for a person: ask them, and pass on their reply with answer.";

export type McpHandler = { serve: ReturnType<typeof toNodeHandler>; close: () => Promise<void> };

/** Answers MCP requests of both revisions. Each request gets its own server, so any process can answer. */
export function newMcpHandler(parts: McpParts, log: FastifyBaseLogger): McpHandler {
  const handler = createMcpHandler((request) => newServer(parts, request), {
    maxRequestBodySize: LARGEST_BODY,
    onerror: (error) => log.debug({ err: error }, "an MCP request was refused"),
  });
  const onerror = (error: Error) => log.error({ err: error }, "an MCP request failed");
  return { serve: toNodeHandler(handler, { onerror }), close: handler.close };
}

function newServer(parts: McpParts, { era }: McpRequestContext): McpServer {
  const server = new McpServer(
    { name: "everstep", title: "Everstep", version: VERSION },
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
  // A client that names no mode supports forms.
  return elicitation !== undefined && ("form" in elicitation || !("url" in elicitation));
}
