import { now } from "../domain/ids.ts";
import type { JsonValue } from "../domain/json.ts";
import { changeStatus, isLive, type Session } from "../domain/session.ts";
import type { Outcome } from "./action-definition.ts";

/** `now` aborts the running step, `next` waits for it. */
export type GuidanceMode = "next" | "now";

/** Moves guidance from its action into the session; one commit writes both. */
export function addGuidance(
  session: Session,
  action_id: string,
  guidance: JsonValue,
  mode: GuidanceMode | undefined,
): Outcome {
  const acceptsGuidance = session.status !== "stopping" && (isLive(session.status) || session.status === "error");
  if (!acceptsGuidance) return { kind: "rejected", reason: `the session is ${session.status}` };
  const awake = session.status === "waiting" ? changeStatus(session, "running") : session;
  return {
    kind: "ok",
    session: {
      ...awake,
      // Guidance ends any wait, timed or not.
      wake_at: null,
      rests_since: null,
      pending_guidance: [...session.pending_guidance, guidance],
      pending_action_ids: [...session.pending_action_ids, action_id],
      updated_at: now(),
    },
    ...(mode === "now" ? { effect: "interrupt" } : {}),
  };
}
