import type { Action } from "../domain/action.ts";
import { settle, takenBack } from "../domain/receipt.ts";
import type { Session } from "../domain/session.ts";
import type { Moniker } from "../monikers/moniker.ts";
import type { Effect, Outcome } from "./action-definition.ts";
import { ACTIONS } from "./action-table.ts";

export type Decision = {
  /** The new session row; undefined if unchanged. */
  session: Session | undefined;
  /** The actions with their outcomes. */
  actions: Action[];
  /** Earlier actions whose guidance is taken back. */
  dropped: string[];
  effects: ReadonlySet<Effect>;
};

/** Decides actions in order, each on the session as the previous one left it. */
export function decide(
  actions: readonly Action[],
  session: Session,
  { moniker, stepping }: { moniker: Moniker; stepping: readonly string[] | null },
): Decision {
  let next = session;
  const dropped = new Set<string>();
  const settled: Action[] = [];
  const effects = new Set<Effect>();
  for (const action of actions) {
    const outcome = outcomeOf(action, next, moniker, stepping);
    settled.push(settle(action, outcome));
    if (outcome.kind !== "ok") continue;
    next = outcome.session ?? next;
    if (outcome.effect) effects.add(outcome.effect);
    if (outcome.dropped !== undefined) dropped.add(outcome.dropped);
  }
  return {
    session: next === session ? undefined : next,
    actions: settled.map((action) => (dropped.delete(action.action_id) ? takenBack(action) : action)),
    effects,
    dropped: [...dropped],
  };
}

/** The outcome of actions for an ended session if no runner is needed to decide; null if one is. */
export function decideEnded(actions: readonly Action[], session: Session): Action[] | null {
  if (session.status !== "done" && session.status !== "stopped") return null;
  const settled: Action[] = [];
  for (const action of actions) {
    const outcome = ACTIONS[action.action_type].handleEnded(session);
    if (outcome === null) return null;
    settled.push(settle(action, outcome));
  }
  return settled;
}

/** A handler that throws fails its action. */
function outcomeOf(action: Action, session: Session, moniker: Moniker, stepping: readonly string[] | null): Outcome {
  try {
    return ACTIONS[action.action_type].handle(action, session, moniker, stepping);
  } catch (error) {
    return { kind: "failed", reason: String(error) };
  }
}
