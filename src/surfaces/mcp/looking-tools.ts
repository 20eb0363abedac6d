import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import { searchHitSchema } from "../../domain/search.ts";
import { sessionStatusSchema } from "../../domain/session.ts";
import { describeMoniker } from "../http/describe-moniker.ts";
import type { McpParts } from "./mcp-parts.ts";
import { anyJson, READ_ONLY } from "./tool-fields.ts";
import { result, toolError } from "./tool-results.ts";

/** Read-only tools. */
export function addLookingTools(server: McpServer, parts: McpParts): void {
  addListMonikers(server, parts);
  addListSessions(server, parts);
  addSearch(server, parts);
}

function addListMonikers(server: McpServer, { catalog }: McpParts): void {
  server.registerTool(
    "list_monikers",
    {
      title: "List tasks",
      description:
        "Lists the available tasks (monikers) with the JSON Schema of their params. Call it before start_agent.",
      inputSchema: z.object({}),
      outputSchema: z.object({
        monikers: z.array(
          z.looseObject({ name: z.string(), kind: z.string(), description: z.string(), params_schema: anyJson }),
        ),
      }),
      annotations: READ_ONLY,
    },
    () =>
      result({
        monikers: [...catalog.values()].map(describeMoniker),
      }),
  );
}

function addListSessions(server: McpServer, { store }: McpParts): void {
  server.registerTool(
    "list_sessions",
    {
      title: "List sessions",
      description:
        "Lists sessions, newest first, without their steps. needs_person finds those that ask something, failed, or are held.",
      inputSchema: z.object({
        status: sessionStatusSchema.optional(),
        agent_id: idSchema.optional(),
        needs_person: z.boolean().optional(),
        limit: z.int().min(1).max(200).default(20),
        offset: z.int().min(0).default(0),
      }),
      outputSchema: z.object({
        sessions: z.array(z.looseObject({ session_id: z.string(), status: z.string() })),
        total: z.int(),
      }),
      annotations: READ_ONLY,
    },
    async ({ status, agent_id, needs_person, limit, offset }) => {
      const { sessions, total } = await store.summarizeSessions({
        limit,
        offset,
        ...(status && { statuses: [status] }),
        ...(agent_id !== undefined && { agent_id }),
        ...(needs_person !== undefined && { needs_person }),
      });
      return result({ sessions, total });
    },
  );
}

function addSearch(server: McpServer, { store }: McpParts): void {
  server.registerTool(
    "search",
    {
      title: "Search",
      description: "Searches everything agents and people ever said; best match first. All words must occur.",
      inputSchema: z.object({
        q: z.string().min(1).max(1000).optional().describe("The words."),
        query: z.string().min(1).max(1000).optional().describe("The same as q."),
        agent_id: idSchema.optional(),
        session_id: idSchema.optional(),
        limit: z.int().min(1).max(100).default(20),
      }),
      outputSchema: z.object({ hits: z.array(searchHitSchema) }),
      annotations: READ_ONLY,
    },
    async ({ q, query, agent_id, session_id: session, limit }) => {
      const words = q ?? query;
      if (words === undefined) return toolError("q is missing", "put the search words in q");
      const within = {
        ...(agent_id !== undefined && { agent_id }),
        ...(session !== undefined && { session_id: session }),
      };
      return result({ hits: await store.search({ q: words, limit, ...within }) });
    },
  );
}
