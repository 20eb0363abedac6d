import { z } from "zod";
import { jsonObjectSchema } from "./json.ts";

const toolPolicySchema = z.enum(["run", "ask", "deny"]);
/** What happens when the model asks for a tool: it runs, a person is asked first, or it is denied. */
export type ToolPolicy = z.infer<typeof toolPolicySchema>;

const toolInfoSchema = z.object({
  /** `<server>/<tool>`. */
  name: z.string(),
  description: z.string(),
  input_schema: jsonObjectSchema,
  read_only: z.boolean().describe("Changes nothing."),
  idempotent: z.boolean().describe("A second call with the same arguments changes nothing more."),
  destructive: z.boolean().describe("May overwrite or delete existing data."),
});
/** A tool as people and models see it. */
export type ToolInfo = z.infer<typeof toolInfoSchema>;

const offeredToolSchema = toolInfoSchema.extend({ policy: toolPolicySchema });
export type OfferedTool = z.infer<typeof offeredToolSchema>;

const serverStatusSchema = z.object({
  name: z.string(),
  status: z.enum(["ready", "connecting", "failed", "stopped"]),
  error: z.string().nullable().describe("Why it cannot be used; null if it can, or if that is not known yet."),
});
/** Whether a server's tools can be called now. */
export type ServerStatus = z.infer<typeof serverStatusSchema>;

/** The response of `GET /api/tools`. */
export const toolsSchema = z.object({ tools: z.array(offeredToolSchema), servers: z.array(serverStatusSchema) });

/** The request and response of `POST /api/tools/try`. */
export const toolTrialRequestSchema = z.object({
  name: z.string().min(1).max(500).describe("`<server>/<tool>`, as `GET /api/tools` lists it."),
  args: jsonObjectSchema.default({}),
});
export const toolTrialSchema = z.object({
  kind: z.enum(["result", "ask", "wait"]).describe("`ask` and `wait`: in a step, the call would ask people or wait."),
  text: z.string(),
  is_error: z.boolean(),
  latency_ms: z.number().min(0),
});
