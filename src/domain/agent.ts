import { z } from "zod";
import { idSchema, timeSchema } from "./ids.ts";
import { jsonObjectSchema } from "./json.ts";
import { sessionOptionsSchema, sessionSchema } from "./session.ts";

/** A row of the table `agent_config`: what a new session of the agent gets where its request leaves something out. */
export const agentConfigSchema = z.object({
  agent_id: idSchema,
  moniker: z.string(),
  params: jsonObjectSchema,
  options: sessionOptionsSchema,
  description: z.string().nullable(),
  updated_at: timeSchema,
});
export type AgentConfig = z.infer<typeof agentConfigSchema>;

/** An agent is known by its sessions: there is no row of its own. */
export const agentSchema = z.object({
  agent_id: idSchema,
  moniker: z.string(),
  session_count: z.int().min(1),
  latest: sessionSchema,
});
export type Agent = z.infer<typeof agentSchema>;
