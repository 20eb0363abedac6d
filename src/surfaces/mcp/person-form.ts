import {
  type CallToolResult,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { JsonValue } from "../../domain/json.ts";
import type { Session } from "../../domain/session.ts";
import { callWithReceipt } from "./call-tools.ts";
import type { McpParts } from "./mcp-parts.ts";
import { questionForm } from "./session-view.ts";
import { RECEIPT_S } from "./tool-fields.ts";

/** The key of a result's single question. */
const ANSWER = "answer";

/** A session's question, for the client to ask its person; the request is repeated with their answer. */
export function ask(session: Session): InputRequiredResult {
  const { question } = session;
  if (!question) throw new TypeError("a session that asks nothing has no form");
  return inputRequired({
    inputRequests: {
      [ANSWER]: inputRequired.elicit({
        message: question.text,
        requestedSchema: questionForm(question).schema as Parameters<typeof inputRequired.elicit>[0]["requestedSchema"],
      }),
    },
    requestState: question.question_id,
  });
}

/** Passes what the person entered to the session. The question's id comes back as the request's state. */
export async function answerFromForm(
  parts: McpParts,
  id: string,
  { mcpReq: { inputResponses, requestState, signal } }: ServerContext,
): Promise<CallToolResult | "declined" | null> {
  const response = inputResponse(inputResponses, ANSWER);
  if (response.kind !== "elicit") return null;
  if (response.action !== "accept") return "declined";
  const question = (await parts.store.getSession(id))?.question;
  const question_id = requestState<string>();
  // Somebody else answered first; the client gets the session's current state.
  if (!question || question.question_id !== question_id) return null;
  const answer = questionForm(question).answerOf(response.content ?? {}) as JsonValue;
  return callWithReceipt(
    parts,
    { action_type: "agent_answer", session_id: id, payload: { answer, question_id } },
    "settled",
    { wait_s: RECEIPT_S, signal },
  );
}
