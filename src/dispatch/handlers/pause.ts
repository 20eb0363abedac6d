import { mayChange } from "../../domain/session.ts";
import { withStatus } from "../../sessions/step-commit.ts";
import type { Handler } from "../outcome.ts";

export const pause: Handler = (_action, session) => {
  if (session.status === "paused") return { kind: "rejected", reason: "the session is paused already" };
  if (!mayChange(session.status, "paused"))
    return { kind: "rejected", reason: `a session that is ${session.status} cannot be paused` };
  return { kind: "ok", session: withStatus(session, "paused", null) };
};
