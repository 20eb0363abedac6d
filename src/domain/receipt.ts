import { z } from "zod";
import type { Action } from "./action.ts";
import { carriesGuidance } from "./action-type.ts";
import { now } from "./ids.ts";
import type { Session } from "./session.ts";

/**
 * What became of a person's word, and the only functions that change it:
 *
 * - `accepted`: the action is in the queue (`newAction`), or waits there for another attempt (`settle` with a retry).
 * - `delivered`: the session has it, or has refused it (`settle`, `deliveredAtOnce`). Without guidance this is the end.
 * - `consumed`: the step of `consumed_iteration` used the guidance (`consumedBy`).
 * - `bounced`: the guidance came to nothing: the session did not take it (`settle`, `bouncedAtOnce`), or ended before a step
 *   used it (`bouncedFrom`), or it was taken back (`takenBack`). `error` says why.
 */
export const receiptSchema = z.enum(["accepted", "delivered", "consumed", "bounced"]);

/** How an attempt at an action ended. */
export type Verdict =
  | { kind: "ok" }
  | { kind: "rejected"; reason: string }
  | { kind: "failed"; reason: string }
  | { kind: "retry"; reason: string; after_ms: number };

/** Some minutes: while workers die and databases fail a session may change hands many times. */
const MOST_ATTEMPTS = 60;

/** The one place where an action of the queue ends, or is put back for another attempt. */
export function settle(action: Action, verdict: Verdict): Action {
  const attempts = action.attempts + 1;
  const ended = { ...action, attempts, processed: true, processed_at: now(), run_at: null };
  switch (verdict.kind) {
    case "ok":
      return { ...ended, outcome: "ok", error: null, receipt: "delivered" };
    case "rejected":
      return {
        ...ended,
        outcome: "rejected",
        error: verdict.reason,
        receipt: carriesGuidance(action) ? "bounced" : "delivered",
      };
    case "failed":
      return {
        ...ended,
        outcome: "failed",
        error: verdict.reason,
        receipt: carriesGuidance(action) ? "bounced" : action.receipt,
      };
    case "retry":
      if (attempts >= MOST_ATTEMPTS) return settle(action, { kind: "failed", reason: verdict.reason });
      return {
        ...action,
        attempts,
        error: verdict.reason,
        run_at: new Date(Date.now() + verdict.after_ms).toISOString(),
      };
  }
  return verdict satisfies never;
}

/** Guidance that is written into its session in the commit that first writes the action. */
export const deliveredAtOnce = (action: Action): Action => ({
  ...action,
  processed: true,
  processed_at: action.created_at,
  outcome: "ok",
  receipt: "delivered",
});

/** Guidance that is refused in the commit that first writes the action. */
export const bouncedAtOnce = (action: Action, reason: string): Action => ({
  ...action,
  processed: true,
  processed_at: action.created_at,
  outcome: "rejected",
  error: reason,
  receipt: "bounced",
});

export const consumedBy = (action: Action, iteration: number): Action => ({
  ...action,
  receipt: "consumed",
  consumed_iteration: iteration,
});

export const bouncedFrom = (action: Action, session: Session): Action => ({
  ...action,
  receipt: "bounced",
  error: `the session ended first: it is ${session.status}${session.stop_reason ? ` (${session.stop_reason})` : ""}`,
});

export const takenBack = (action: Action): Action => ({
  ...action,
  receipt: "bounced",
  error: "it was taken back before a step used it",
});

/** A final action never changes again: it is processed, and if it brought guidance, that was consumed or bounced. */
export const isFinal = (action: Action): boolean =>
  action.processed && !(carriesGuidance(action) && action.outcome === "ok" && action.receipt === "delivered");
