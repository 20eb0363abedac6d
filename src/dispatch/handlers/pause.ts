import { changeStatus, mayChange } from "../../domain/session.ts";
import type { Handler } from "../outcome.ts";

export const pause: Handler = ({ payload, metadata }, session) => {
  if (session.status === "paused") return { kind: "rejected", reason: "the session is paused already" };
  if (!mayChange(session.status, "paused"))
    return { kind: "rejected", reason: `a session that is ${session.status} cannot be paused` };
  const { user_id } = metadata;
  const { reason } = payload;
  const pause_reason = {
    kind: "person" as const,
    ...(typeof user_id === "string" ? { user_id } : {}),
    ...(typeof reason === "string" ? { reason } : {}),
  };
  return { kind: "ok", session: { ...changeStatus(session, "paused"), pause_reason } };
};
