import type { ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import type { JsonObject } from "../../domain/json.ts";

/** Seconds that a tool waits for a receipt unless it is told otherwise, and the most that any waits: less than a silent connection lives. */
export const RECEIPT_S = 10;
const LONGEST_WAIT_S = 100;

export const sessionField = idSchema.describe("The session; list_sessions lists them.");
export const waitField = (text: string) => z.number().min(0).max(LONGEST_WAIT_S).optional().describe(text);
export const userField = z
  .string()
  .min(1)
  .max(500)
  .optional()
  .describe("The person in whose name this is done, for the record.");
/** Any JSON, without the checks of JSON Schema's own depth: the queue checks it. */
export const anyJson = z.unknown();

export const startedSchema = z.object({
  action_id: z.string(),
  agent_id: z.string(),
  session_id: z.string(),
  next: z.string(),
});
export const READ_ONLY = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };
export const CHANGES = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false };

export const by = (user: string | undefined): JsonObject => (user === undefined ? {} : { user_id: user });

/** `mayAsk` tells whether the client of a request can put a question before its person. */
export type ToolOptions = { mayAsk: (context: ServerContext) => boolean };
