import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { awaitRest } from "../await-session.ts";
import type { McpParts } from "./mcp-parts.ts";
import { answerFromForm, ask } from "./person-form.ts";
import { nextMove, readingSchema, sessionView, stepView } from "./session-view.ts";
import { READ_ONLY, sessionField, type ToolOptions, waitField } from "./tool-fields.ts";
import { result, unknownSession } from "./tool-results.ts";

const STEPS = 20;

export function addReadingTool(server: McpServer, parts: McpParts, { mayAsk }: ToolOptions): void {
  server.registerTool(
    "read_session",
    {
      title: "Read a session",
      description:
        "Returns a session's state and its steps' texts. With wait_s it first waits until the session rests, asks something or ends. If the client can, it asks the person a question directly; otherwise the question comes as text, to be answered with answer.",
      inputSchema: z.object({
        session_id: sessionField,
        after_iteration: z.int().min(-1).optional().describe(`Only steps after this one. Default: the last ${STEPS}.`),
        limit: z.int().min(1).max(200).default(STEPS).describe("The most steps to return."),
        wait_s: waitField("Seconds to wait for the session to rest."),
      }),
      outputSchema: readingSchema,
      annotations: READ_ONLY,
    },
    async ({ session_id: id, after_iteration, limit, wait_s: seconds = 0 }, context) => {
      const { store } = parts;
      const { signal } = context.mcpReq;
      if (!(await store.getSession(id))) return unknownSession(id);
      const answered = await answerFromForm(parts, id, context);
      if (answered !== null && answered !== "declined" && answered.isError) return answered;
      const wait = { wait_ms: seconds * 1000, signal };
      const session = seconds > 0 ? await awaitRest(parts, id, wait) : await store.getSession(id);
      if (!session) return unknownSession(id);
      if (seconds > 0 && session.question && answered !== "declined" && mayAsk(context)) return ask(session);
      const from = after_iteration ?? Math.max(-1, session.iteration - limit);
      const steps = await store.listSteps({ session_id: id, after_iteration: from, limit, offset: 0 });
      return result({ session: sessionView(session), steps: steps.map(stepView), next: nextMove(session) });
    },
  );
}
