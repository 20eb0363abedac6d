import { z } from "zod";
import type { Action } from "./action.ts";
import { carriesGuidance } from "./action-type.ts";
import { now } from "./ids.ts";
import type { Session } from "./session.ts";

/**
 * What became of a person's request, and the only functions that change it:
 *
 * - `accepted`: the action is in the queue (`newAction`), or waits there for a retry (`settle`).
 * - `delivered`: the session has applied or rejected it (`settle`, `deliveredAtOnce`). Final for an action without guidance.
 * - `consumed`: the step of `consumed_iteration` used the guidance (`consumedBy`).
 * - `bounced`: no step used the guidance: the session rejected it (`settle`, `bouncedAtOnce`), ended first (`bouncedFrom`), or
 *   the sender took it back (`takenBack`). `error` says why.
 */
export const receiptSchema = z.enum(["accepted", "delivered", "consumed", "bounced"]);

/** How an attempt at an action ended. */
export type Verdict =
  | { kind: "ok" }
  | { kind: "rejected"; reason: string }
  | { kind: "failed"; reason: string }
  | { kind: "retry"; reason: string; after_ms: number };

/** Enough for some minutes: while workers die and databases fail over, a session may change owners many times. */
const MOST_ATTEMPTS = 60;

/** The one place where a queued action ends or is scheduled for a retry. */
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

/** For guidance written into its session by the commit that first writes the action. */
export const deliveredAtOnce = (action: Action): Action => ({
  ...action,
  processed: true,
  processed_at: action.created_at,
  outcome: "ok",
  receipt: "delivered",
});

/** For guidance rejected by the commit that first writes the action. */
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

/** A final action never changes again: it is processed, and its guidance, if any, is consumed or bounced. */
export const isFinal = (action: Action): boolean =>
  action.processed && !(carriesGuidance(action) && action.outcome === "ok" && action.receipt === "delivered");
