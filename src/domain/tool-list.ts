import { z } from "zod";
import { jsonObjectSchema } from "./json.ts";

const toolPolicySchema = z.enum(["run", "ask", "deny"]);
/** What happens when the model asks for a tool: it runs, a person is asked first, or it is refused. */
export type ToolPolicy = z.infer<typeof toolPolicySchema>;

const toolInfoSchema = z.object({
  /** `<server>/<tool>`. */
  name: z.string(),
  description: z.string(),
  input_schema: jsonObjectSchema,
  read_only: z.boolean().describe("Changes nothing."),
  idempotent: z.boolean().describe("A second call with the same arguments changes nothing more."),
  destructive: z.boolean().describe("May overwrite or delete what is there."),
});
/** A tool as people and models see it. */
export type ToolInfo = z.infer<typeof toolInfoSchema>;

const offeredToolSchema = toolInfoSchema.extend({ policy: toolPolicySchema });
export type OfferedTool = z.infer<typeof offeredToolSchema>;

const serverStatusSchema = z.object({
  name: z.string(),
  status: z.enum(["ready", "connecting", "failed", "stopped"]),
  error: z.string().nullable().describe("Why it cannot be used; null where it can, or nothing is known yet."),
});
/** Whether the tools of a server can be called now. */
export type ServerStatus = z.infer<typeof serverStatusSchema>;

/** What `GET /api/tools` answers. */
export const toolsSchema = z.object({ tools: z.array(offeredToolSchema), servers: z.array(serverStatusSchema) });
