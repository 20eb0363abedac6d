import type { Action } from "../domain/action.ts";
import { now } from "../domain/ids.ts";
import type { Session } from "../domain/session.ts";
import type { Moniker } from "../monikers/moniker.ts";

/** What the runner does beside looking at the session again. */
export type Effect = "interrupt" | "destroy";

/** What a handler makes of an action: a new row of the session, or why not. */
export type Outcome =
  | {
      kind: "ok";
      session?: Session;
      effect?: Effect;
    }
  | { kind: "rejected"; reason: string }
  | { kind: "failed"; reason: string }
  | { kind: "retry"; reason: string; after_ms: number };

/** A handler decides and nothing more: it sees the session in its turn, and what it returns is committed with the action. */
export type Handler = (action: Action, session: Session, moniker: Moniker) => Outcome;

/** Some minutes: while workers die and databases fail a session may change hands many times. */
const MOST_ATTEMPTS = 60;

/** The one place where an action ends, or is put back for another try. */
export function settle(action: Action, outcome: Outcome, guidance: boolean): Action {
  const at = now();
  const attempts = action.attempts + 1;
  const ended = { ...action, attempts, processed: true, processed_at: at, run_at: null };
  switch (outcome.kind) {
    case "ok":
      return { ...ended, outcome: "ok", error: null, receipt: "delivered" };
    case "rejected":
      return { ...ended, outcome: "rejected", error: outcome.reason, receipt: guidance ? "bounced" : "delivered" };
    case "failed":
      return { ...ended, outcome: "failed", error: outcome.reason, receipt: guidance ? "bounced" : action.receipt };
    case "retry":
      if (attempts >= MOST_ATTEMPTS) return settle(action, { kind: "failed", reason: outcome.reason }, guidance);
      return {
        ...action,
        attempts,
        error: outcome.reason,
        run_at: new Date(Date.now() + outcome.after_ms).toISOString(),
      };
  }
  return outcome satisfies never;
}
