import { z } from "zod";
import { idSchema, timeSchema } from "./ids.ts";
import { jsonObjectSchema } from "./json.ts";
import { sessionCountsSchema, sessionOptionsSchema, sessionSchema } from "./session.ts";

/** A row of the table `agent_config`: the defaults for whatever a request for a new session leaves out. */
export const agentConfigSchema = z.object({
  agent_id: idSchema,
  moniker: z.string(),
  params: jsonObjectSchema,
  options: sessionOptionsSchema,
  description: z.string().nullable(),
  updated_at: timeSchema,
});
export type AgentConfig = z.infer<typeof agentConfigSchema>;

/** An agent has no row; it exists through its sessions. */
export const agentSchema = z.object({
  agent_id: idSchema,
  moniker: z.string(),
  session_count: z.int().min(1),
  counts: sessionCountsSchema.describe("The agent's sessions, counted by status."),
  latest: sessionSchema,
});
export type Agent = z.infer<typeof agentSchema>;
