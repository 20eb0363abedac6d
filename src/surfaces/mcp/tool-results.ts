import type { CallToolResult } from "@modelcontextprotocol/server";
import type { Refusal } from "../../actions/refusal.ts";

/** A tool's result: structured for programs and, as text, for models whose client shows only that. */
export const result = (structuredContent: Record<string, unknown>): CallToolResult => ({
  content: [{ type: "text", text: JSON.stringify(structuredContent) }],
  structuredContent,
});

/** An error with advice, which the model reads as the tool's result. */
export const toolError = (what: string, next: string): CallToolResult => ({
  content: [{ type: "text", text: `${what}; ${next}` }],
  isError: true,
});

export const unknownSession = (session_id: string): CallToolResult =>
  toolError(`there is no session ${session_id}`, "list_sessions lists the sessions");

export function refusedCall(refusal: Refusal): CallToolResult {
  switch (refusal.kind) {
    case "invalid": {
      const fields = refusal.errors.map(({ path, message }) => `${path.replace(/^payload\./, "")}: ${message}`);
      return toolError(
        fields.join("; "),
        "correct it and call again; list_monikers has the schema of each moniker's params",
      );
    }
    case "unknown":
      return toolError(`the ${refusal.what} is unknown`, "list_sessions and list_monikers list what exists");
    case "conflict":
      return toolError(refusal.detail, "read_session shows the session's current state");
    case "full":
      return toolError(
        refusal.detail,
        `call again in ${refusal.retry_after_s} seconds, or resume the session if it is paused`,
      );
  }
  return refusal satisfies never;
}
