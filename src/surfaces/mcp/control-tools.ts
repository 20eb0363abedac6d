import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { JsonValue } from "../../domain/json.ts";
import { requestedOptionsSchema } from "../../domain/session.ts";
import { callWithReceipt } from "./call-tools.ts";
import type { McpParts } from "./mcp-parts.ts";
import { receiptSchema } from "./session-view.ts";
import { by, CHANGES, RECEIPT_S, sessionField, userField } from "./tool-fields.ts";

/** Tools that hold a session, let it go on, or end it. */
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
    const options = requestedOptionsSchema
      .optional()
      .describe("Options that replace the session's, such as a higher limit.");
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
        const given = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
        const request = {
          action_type: `agent_${name}` as const,
          session_id: id,
          payload: given as Record<string, JsonValue>,
          metadata: by(user),
        };
        return callWithReceipt(parts, request, "settled", { wait_s: RECEIPT_S, signal });
      },
    );
  };
  control(
    "pause",
    "Pause a session",
    "Lets a session start no further step. The one that runs is kept. resume lets it go on.",
  );
  control(
    "resume",
    "Resume a session",
    "Lets a paused session go on, tries a failed step again, or lifts a limit that stopped it (options).",
  );
  control(
    "destroy",
    "Destroy a session",
    "Ends a session for good; its steps stay and can be read and forked. It cannot be undone.",
    true,
  );
}
