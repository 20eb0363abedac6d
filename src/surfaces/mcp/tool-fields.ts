import type { ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import type { JsonObject } from "../../domain/json.ts";

/** How long a tool waits for a receipt by default, and the longest wait, in seconds: shorter than a silent connection lives. */
export const RECEIPT_S = 10;
const LONGEST_WAIT_S = 100;

export const sessionField = idSchema.describe("The session; list_sessions lists them.");
export const waitField = (text: string) => z.number().min(0).max(LONGEST_WAIT_S).optional().describe(text);
export const userField = z
  .string()
  .min(1)
  .max(500)
  .optional()
  .describe("The person on whose behalf this is done, for the record.");
/** Any JSON, unchecked here: the queue checks it. */
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

/** `mayAsk` says whether the client of a request can ask its person. */
export type ToolOptions = { mayAsk: (context: ServerContext) => boolean };
