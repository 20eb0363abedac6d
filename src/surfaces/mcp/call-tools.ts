import type { CallToolResult } from "@modelcontextprotocol/server";
import type { Action } from "../../domain/action.ts";
import type { JsonObject } from "../../domain/json.ts";
import { awaitAction } from "../await-session.ts";
import type { McpParts } from "./mcp-parts.ts";
import { receiptView } from "./session-view.ts";
import { refusedCall, result, toolError } from "./tool-results.ts";

type Request = { action_type: Action["action_type"]; session_id: string; payload: JsonObject; metadata?: JsonObject };
type Waiting = { wait_s: number; signal: AbortSignal };

/** Submits a tool's request and returns the receipt: as soon as a step has used it, at the latest after `wait_s`. */
export async function callWithReceipt(
  parts: McpParts,
  request: Request,
  stage: "settled" | "used",
  { wait_s, signal }: Waiting,
): Promise<CallToolResult> {
  const outcome = await parts.queue.submit(request);
  if (outcome.kind !== "accepted") return refusedCall(outcome);
  return receiptOf(parts, outcome, stage, { wait_s, signal });
}

async function receiptOf(
  parts: McpParts,
  ids: { action_id: string; session_id: string },
  stage: "settled" | "used",
  { wait_s, signal }: Waiting,
): Promise<CallToolResult> {
  const { store } = parts;
  const action = await awaitAction(parts, ids, stage, { wait_ms: wait_s * 1000, signal });
  if (!action) return toolError(`action ${ids.action_id} is unknown`, "call again");
  const { session_id } = ids;
  const iteration = action.consumed_iteration;
  const [session, steps] = await Promise.all([
    store.getSession(session_id),
    iteration === null
      ? []
      : store.listSteps({
          session_id,
          status: "ok",
          min_iteration: iteration,
          max_iteration: iteration,
          limit: 1,
          offset: 0,
        }),
  ]);
  if (action.outcome === "rejected" || action.outcome === "failed")
    return toolError(
      `the session rejected it: ${action.error ?? "no reason given"}`,
      "read_session shows the session's state",
    );
  return result(receiptView(action, steps[0] ?? null, session));
}
