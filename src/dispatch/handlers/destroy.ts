import { changeStatus, isStoppedByLimit, mayChange } from "../../domain/session.ts";
import type { Handler } from "../outcome.ts";

/** From here on the session is `stopping`, also after a crash; its runner ends it as `stopped`. */
export const destroy: Handler = (_action, session) => {
  if (session.status === "stopping") return { kind: "rejected", reason: "the session is stopping already" };
  // It could have been set going again; from here on it cannot.
  if (isStoppedByLimit(session)) return { kind: "ok", session: changeStatus(session, "stopped", "destroyed") };
  if (!mayChange(session.status, "stopping"))
    return { kind: "rejected", reason: `the session is ${session.status} already` };
  return { kind: "ok", session: changeStatus(session, "stopping", "destroyed"), effect: "destroy" };
};
