import { ClientError } from "../../../client/client.ts";
import { isFinal } from "../../../domain/receipt.ts";
import { PlatformError, type Receipt } from "./platform-client.ts";
import type { RuntimeHttp } from "./runtime-http.ts";

type ReceiptTarget = { http: RuntimeHttp; session_id: string; action_id: string };

/**
 * Follows a session until one of its actions is final, across restarts of the runtime. The stream begins with the session's current state,
 * after each reconnection too, so a receipt that arrived in between is not missed.
 */
export async function awaitReceipt(
  { http, session_id, action_id }: ReceiptTarget,
  signal: AbortSignal,
): Promise<Receipt | null> {
  const options = { until_ended: true, wait_for_server: true, signal };
  try {
    for await (const { type, data } of http.events(session_id, options)) {
      if (type !== "agent_state_update" && !(type === "action_update" && data.action_id === action_id)) continue;
      const reading = await readReceipt(http, action_id);
      if (reading.kind === "final") return reading.receipt;
    }
    const last = signal.aborted ? null : await readReceipt(http, action_id);
    return last?.kind === "final" ? last.receipt : null;
  } catch (error) {
    // The session is gone, or the token is no longer valid.
    if (error instanceof ClientError) return null;
    throw error;
  }
}

type Reading = { kind: "final"; receipt: Receipt | null } | { kind: "open" };

async function readReceipt(http: RuntimeHttp, action_id: string): Promise<Reading> {
  try {
    const action = await http.findAction(action_id);
    if (action === null) return { kind: "final", receipt: null };
    if (!isFinal(action)) return { kind: "open" };
    const { outcome, receipt, error, consumed_iteration: iteration } = action;
    if (outcome === "ok" && receipt !== "bounced") return { kind: "final", receipt: { kind: "done", iteration } };
    return { kind: "final", receipt: { kind: "rejected", reason: error ?? String(outcome) } };
  } catch (error) {
    // The runtime is away: the stream continues when it is back.
    if (error instanceof PlatformError) return { kind: "open" };
    throw error;
  }
}
