import { now } from "../domain/ids.ts";
import type { JsonValue } from "../domain/json.ts";
import { changeStatus, isLive, type Session } from "../domain/session.ts";
import type { Outcome } from "./action-definition.ts";

/** `now` cuts the running step short, `next` waits for it. */
export type GuidanceMode = "next" | "now";

/** Moves guidance from its action into the session, in the one commit of both. */
export function addGuidance(
  session: Session,
  action_id: string,
  guidance: JsonValue,
  mode: GuidanceMode | undefined,
): Outcome {
  const canTakeIt = session.status !== "stopping" && (isLive(session.status) || session.status === "error");
  if (!canTakeIt) return { kind: "rejected", reason: `the session is ${session.status}` };
  const awake = session.status === "waiting" ? changeStatus(session, "running") : session;
  return {
    kind: "ok",
    session: {
      ...awake,
      // Being told ends the wait, whatever its time was.
      wake_at: null,
      rests_since: null,
      pending_guidance: [...session.pending_guidance, guidance],
      pending_action_ids: [...session.pending_action_ids, action_id],
      updated_at: now(),
    },
    ...(mode === "now" ? { effect: "interrupt" } : {}),
  };
}
