import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { create } from "../../actions/types/create.ts";
import { idSchema } from "../../domain/ids.ts";
import { jsonObjectSchema } from "../../domain/json.ts";
import { requestedOptionsSchema } from "../../domain/session.ts";
import type { McpParts } from "./mcp-parts.ts";
import { anyJson, by, CHANGES, sessionField, startedSchema, userField } from "./tool-fields.ts";
import { refusedCall, result, toolError } from "./tool-results.ts";

/** Tools that make a session. */
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
        "Starts a session of an agent with a task (moniker) and its params, and answers at once with the session's id; it runs on by itself. read_session with wait_s follows it, guide steers it. The same session_id again does nothing twice.",
      inputSchema: z.object({
        moniker: create.payload.shape.moniker.describe(
          "The task; list_monikers lists them. Needed unless the agent is configured.",
        ),
        agent_id: idSchema.optional().describe("The agent; named after the moniker where absent."),
        session_id: idSchema.optional().describe("An id of your own; made up where absent."),
        params: jsonObjectSchema.optional().describe("The input of the task, as its params_schema has it."),
        options: requestedOptionsSchema.optional().describe("Limits such as max_steps, and how tools are handled."),
        conversation_id: idSchema.optional().describe("A conversation to speak in."),
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
        "Starts a new session that goes on from one of a session's steps, with other guidance, state, params, options or moniker where given. The old one stays as it is.",
      inputSchema: z.object({
        session_id: sessionField,
        iteration: z.int().min(0).describe("The last step that both share."),
        new_session_id: idSchema.optional().describe("The new session's id; made up where absent."),
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
