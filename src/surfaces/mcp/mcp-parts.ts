import type { ServerContext } from "../http/context.ts";

/** What the tools work with: the very parts that the HTTP routes have. */
export type McpParts = Pick<ServerContext, "store" | "queue" | "events" | "catalog">;
