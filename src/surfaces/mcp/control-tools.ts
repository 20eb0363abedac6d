import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { JsonValue } from "../../domain/json.ts";
import { requestedOptionsSchema } from "../../domain/session.ts";
import { callWithReceipt } from "./call-tools.ts";
import type { McpParts } from "./mcp-parts.ts";
import { receiptSchema } from "./session-view.ts";
import { by, CHANGES, RECEIPT_S, sessionField, userField } from "./tool-fields.ts";

/** Tools that pause, resume or end a session. */
export function addControlTools(server: McpServer, parts: McpParts): void {
  const inputSchema = z.object({
    session_id: sessionField,
    reason: z.string().max(2000).optional().describe("Why, for the record."),
    user_id: userField,
  });
  const control = (
    name: "pause" | "resume" | "destroy",
    title: string,
    description: string,
    isDestructive = false,
  ): void => {
    const options = requestedOptionsSchema.optional().describe("Options to change, such as a higher limit.");
    server.registerTool(
      name,
      {
        title,
        description,
        inputSchema: inputSchema.extend(name === "resume" ? { options } : {}),
        outputSchema: receiptSchema,
        annotations: { ...CHANGES, destructiveHint: isDestructive, idempotentHint: true },
      },
      ({ session_id: id, user_id: user, ...payload }, { mcpReq: { signal } }) => {
        const fields = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
        const request = {
          action_type: `agent_${name}` as const,
          session_id: id,
          payload: fields as Record<string, JsonValue>,
          metadata: by(user),
        };
        return callWithReceipt(parts, request, "settled", { wait_s: RECEIPT_S, signal });
      },
    );
  };
  control(
    "pause",
    "Pause a session",
    "Pauses a session: a running step may finish, no further one starts. Use resume to continue.",
  );
  control(
    "resume",
    "Resume a session",
    "Continues a paused session, retries a failed step, or raises a limit that stopped it (options).",
  );
  control(
    "destroy",
    "Destroy a session",
    "Ends a session permanently; its steps can still be read and forked. This cannot be undone.",
    true,
  );
}
