import type { ServerContext } from "../http/context.ts";

/** What the tools work with, shared with the HTTP routes. */
export type McpParts = Pick<ServerContext, "store" | "queue" | "events" | "catalog">;
