import { now } from "../../domain/ids.ts";
import { changeStatus, isLive } from "../../domain/session.ts";
import { guidanceOf } from "../../queue/payloads.ts";
import type { Handler } from "../outcome.ts";

/** `agent_interrupt` and `agent_input`: the guidance moves from the action into the session in the one commit of both. */
export const guide: Handler = (action, session) => {
  const canTakeIt = session.status !== "stopping" && (isLive(session.status) || session.status === "error");
  if (!canTakeIt) return { kind: "rejected", reason: `the session is ${session.status}` };
  const { guidance, mode } = guidanceOf(action.payload);
  const woken = session.status === "waiting" ? changeStatus(session, "running") : session;
  return {
    kind: "ok",
    session: {
      ...woken,
      pending_guidance: [...session.pending_guidance, guidance],
      pending_action_ids: [...session.pending_action_ids, action.action_id],
      updated_at: now(),
    },
    ...(mode === "now" ? { effect: "interrupt" } : {}),
  };
};
