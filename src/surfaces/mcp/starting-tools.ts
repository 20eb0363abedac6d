import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { create } from "../../actions/types/create.ts";
import { idSchema } from "../../domain/ids.ts";
import { jsonObjectSchema } from "../../domain/json.ts";
import { requestedOptionsSchema } from "../../domain/session.ts";
import type { McpParts } from "./mcp-parts.ts";
import { anyJson, by, CHANGES, sessionField, startedSchema, userField } from "./tool-fields.ts";
import { refusedCall, result, toolError } from "./tool-results.ts";

/** Tools that create a session. */
export function addStartingTools(server: McpServer, parts: McpParts): void {
  addStart(server, parts);
  addFork(server, parts);
}

function addStart(server: McpServer, { queue }: McpParts): void {
  server.registerTool(
    "start_agent",
    {
      title: "Start an agent",
      description:
        "Starts a session of an agent with a task (moniker) and its params, and returns the session's id at once; it runs on its own. read_session with wait_s follows it, guide steers it. Repeating the call with the same session_id is safe.",
      inputSchema: z.object({
        moniker: create.payload.shape.moniker.describe(
          "The task; list_monikers lists them. Needed unless the agent is configured.",
        ),
        agent_id: idSchema.optional().describe("The agent. Default: the moniker's name."),
        session_id: idSchema.optional().describe("Your own id. Default: generated."),
        params: jsonObjectSchema.optional().describe("The task's input, as described by its params_schema."),
        options: requestedOptionsSchema.optional().describe("Limits such as max_steps, and how tools are handled."),
        conversation_id: idSchema.optional().describe("A conversation to join."),
        user_id: userField,
      }),
      outputSchema: startedSchema,
      annotations: CHANGES,
    },
    async ({ agent_id, session_id: id, user_id: user, ...payload }) => {
      const agent = agent_id ?? payload.moniker;
      if (agent === undefined)
        return toolError("neither moniker nor agent_id is given", "list_monikers lists the monikers");
      const outcome = await queue.submit({
        action_type: "agent_create",
        agent_id: agent,
        ...(id !== undefined && { session_id: id }),
        payload,
        metadata: by(user),
      });
      if (outcome.kind !== "accepted") return refusedCall(outcome);
      const { kind: _, ...accepted } = outcome;
      return result({
        ...accepted,
        next: `It runs: read_session {session_id: ${JSON.stringify(accepted.session_id)}, wait_s: 60} waits until it rests.`,
      });
    },
  );
}

function addFork(server: McpServer, { queue }: McpParts): void {
  server.registerTool(
    "fork",
    {
      title: "Fork a session",
      description:
        "Starts a new session from one of a session's steps, optionally with other guidance, state, params, options or moniker. The old session is unchanged.",
      inputSchema: z.object({
        session_id: sessionField,
        iteration: z.int().min(0).describe("The last step both sessions share."),
        new_session_id: idSchema.optional().describe("The new session's id. Default: generated."),
        guidance: anyJson.optional(),
        state: jsonObjectSchema.optional(),
        params: jsonObjectSchema.optional(),
        options: requestedOptionsSchema.optional(),
        moniker: z.string().min(1).max(200).optional(),
        user_id: userField,
      }),
      outputSchema: startedSchema.extend({ forked_from: z.string() }),
      annotations: CHANGES,
    },
    async ({ session_id: id, new_session_id, user_id: user, ...rest }) => {
      const payload = { ...rest, ...(new_session_id !== undefined && { session_id: new_session_id }) };
      const metadata = by(user);
      const outcome = await queue.submit({ action_type: "agent_fork", session_id: id, payload, metadata });
      if (outcome.kind !== "accepted") return refusedCall(outcome);
      const { kind: _, ...accepted } = outcome;
      const next = `read_session {session_id: ${JSON.stringify(accepted.session_id)}, wait_s: 60} waits until it rests.`;
      return result({ ...accepted, forked_from: id, next });
    },
  );
}
