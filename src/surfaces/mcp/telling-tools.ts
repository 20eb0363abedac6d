import type { CallToolResult, InputRequiredResult, McpServer, ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import type { JsonObject, JsonValue } from "../../domain/json.ts";
import { callWithReceipt } from "./call-tools.ts";
import type { McpParts } from "./mcp-parts.ts";
import { answerFromForm, ask } from "./person-form.ts";
import { questionText, receiptSchema } from "./session-view.ts";
import {
  anyJson,
  by,
  CHANGES,
  RECEIPT_S,
  sessionField,
  type ToolOptions,
  userField,
  waitField,
} from "./tool-fields.ts";
import { toolError, unknownSession } from "./tool-results.ts";

/** Tools that send guidance and answers to a session. */
export function addTellingTools(server: McpServer, parts: McpParts, options: ToolOptions): void {
  addGuide(server, parts);
  addAnswer(server, parts, options);
}

function addGuide(server: McpServer, parts: McpParts): void {
  server.registerTool(
    "guide",
    {
      title: "Guide a session",
      description:
        "Sends guidance to a session's next step, or with mode now to the running one. Returns the receipt: consumed with the step that used it, delivered if none has yet, bounced if the session ended first.",
      inputSchema: z.object({
        session_id: sessionField,
        guidance: anyJson.optional().describe("Text, or any JSON that the moniker accepts."),
        text: z.string().optional().describe("The same as guidance, as text."),
        mode: z
          .enum(["next", "now"])
          .optional()
          .describe("now interrupts the running step; it runs again with the guidance."),
        wait_s: waitField(`Seconds to wait until a step has used it. Default: ${RECEIPT_S}.`),
        user_id: userField,
      }),
      outputSchema: receiptSchema,
      annotations: CHANGES,
    },
    ({ session_id: id, guidance, text, mode, wait_s: seconds = RECEIPT_S, user_id: user }, { mcpReq: { signal } }) => {
      const content = guidance ?? text;
      if (content === undefined) return toolError("guidance is missing", "put the message for the session in guidance");
      const payload: JsonObject = { guidance: content as JsonValue, ...(mode && { mode }) };
      const metadata = by(user);
      const request = { action_type: "agent_interrupt" as const, session_id: id, payload, metadata };
      return callWithReceipt(parts, request, "used", { wait_s: seconds, signal });
    },
  );
}

function addAnswer(server: McpServer, parts: McpParts, { mayAsk }: ToolOptions): void {
  server.registerTool(
    "answer",
    {
      title: "Answer a question",
      description:
        "Passes a person's answer to a session's question (question in read_session): one of its choices, an object that fits its schema, or text. Without answer, the client asks the person directly if it can. Do not answer for the person on your own.",
      inputSchema: z.object({
        session_id: sessionField,
        answer: anyJson.optional(),
        question_id: idSchema.optional().describe("The question answered. Default: the open one."),
        wait_s: waitField(`Seconds to wait until a step has used it. Default: ${RECEIPT_S}.`),
        user_id: userField,
      }),
      outputSchema: receiptSchema,
      annotations: CHANGES,
    },
    async ({ session_id: id, answer, question_id, wait_s: seconds = RECEIPT_S, user_id: user }, context) => {
      const { signal } = context.mcpReq;
      if (answer === undefined) return answerByPerson(parts, id, context, mayAsk);
      const payload: JsonObject = { answer: answer as JsonValue, ...(question_id !== undefined && { question_id }) };
      const metadata = by(user);
      const request = { action_type: "agent_answer" as const, session_id: id, payload, metadata };
      return callWithReceipt(parts, request, "used", { wait_s: seconds, signal });
    },
  );
}

async function answerByPerson(
  parts: McpParts,
  id: string,
  context: ServerContext,
  mayAsk: ToolOptions["mayAsk"],
): Promise<CallToolResult | InputRequiredResult> {
  const answered = await answerFromForm(parts, id, context);
  if (answered === "declined")
    return toolError("the person did not answer", "leave the question open, or ask them yourself");
  if (answered) return answered;
  const session = await parts.store.getSession(id);
  if (!session) return unknownSession(id);
  if (!session.question) return toolError(`session ${id} has no open question`, "read_session shows its state");
  if (!mayAsk(context))
    return toolError("answer is missing, and this client cannot ask the person", questionText(session));
  return ask(session);
}
