import { type Action, type ActionType, carriesGuidance } from "../domain/action.ts";
import type { Session } from "../domain/session.ts";
import type { Moniker } from "../monikers/moniker.ts";
import { create } from "./handlers/create.ts";
import { destroy } from "./handlers/destroy.ts";
import { fork } from "./handlers/fork.ts";
import { guide } from "./handlers/guide.ts";
import { pause } from "./handlers/pause.ts";
import { resume } from "./handlers/resume.ts";
import { type Effect, type Handler, type Outcome, settle } from "./outcome.ts";

const HANDLERS: Readonly<Record<ActionType, Handler>> = {
  agent_create: create,
  agent_pause: pause,
  agent_resume: resume,
  agent_interrupt: guide,
  agent_input: guide,
  agent_destroy: destroy,
  agent_fork: fork,
};

export type Decision = {
  /** The session as it is to be, where that changes. */
  session: Session | undefined;
  /** The actions as they end. */
  actions: Action[];
  effects: ReadonlySet<Effect>;
};

/** What comes of actions, each decided on the session as the one before it leaves it. */
export function decide(actions: readonly Action[], session: Session, moniker: Moniker): Decision {
  let next = session;
  const settled: Action[] = [];
  const effects = new Set<Effect>();
  for (const action of actions) {
    const outcome = outcomeOf(action, next, moniker);
    settled.push(settle(action, outcome, carriesGuidance(action)));
    if (outcome.kind !== "ok") continue;
    next = outcome.session ?? next;
    if (outcome.effect) effects.add(outcome.effect);
  }
  return { session: next === session ? undefined : next, actions: settled, effects };
}

/** A handler that throws ends its action as failed. */
function outcomeOf(action: Action, session: Session, moniker: Moniker): Outcome {
  try {
    return HANDLERS[action.action_type](action, session, moniker);
  } catch (error) {
    return { kind: "failed", reason: String(error) };
  }
}
