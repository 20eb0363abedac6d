import { isDeepStrictEqual } from "node:util";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import type { Rows } from "../rows.ts";

/**
 * Invariants 2, 6 and 7: iterations are dense, each step continues from the previous one, and the session's row matches the
 * last.
 */
export function checkSessions({ sessions, steps }: Rows): string[] {
  return [...sessions.values()].flatMap((session) => {
    const own = steps.get(session.session_id) ?? [];
    return [
      ...checkChain(session, own),
      ...checkMeaning(session, own),
      ...checkFork(session, own, steps.get(session.parent_session_id ?? "")),
    ].map((line) => `${session.session_id}: ${line}`);
  });
}

function checkChain(session: Session, steps: Step[]): string[] {
  const violations: string[] = [];
  let last: Step | null = null;
  for (const step of steps) {
    const iteration: number = (last?.iteration ?? -1) + 1;
    if (step.iteration !== iteration)
      violations.push(`has a step (${step.status}) of iteration ${step.iteration} where ${iteration} is due`);
    if (last && step.step_token !== last.next_step_token)
      violations.push(
        `step ${step.iteration} begins at ${step.step_token}, the one before ended at ${last.next_step_token}`,
      );
    if (step.status === "ok") last = step;
  }
  if (new Set(steps.map(({ id }) => id)).size !== steps.length) violations.push("lists a step twice");
  if (session.iteration !== (last?.iteration ?? -1))
    violations.push(`stands at ${session.iteration}, its last step is ${last?.iteration ?? -1}`);
  if (last && session.next_step_token !== last.next_step_token)
    violations.push(`goes on at ${session.next_step_token}, its last step ended at ${last.next_step_token}`);
  if (last && !isDeepStrictEqual(session.context, last.state)) violations.push("has another state than its last step");
  return violations;
}

/** Checks what the built-in monikers wrote, step by step. */
function checkMeaning({ moniker, params, status, parent_iteration }: Session, steps: Step[]): string[] {
  if (moniker !== "count" && moniker !== "script") return [];
  const ok = steps.filter((step) => step.status === "ok");
  const frames = (params["frames"] ?? []) as { text?: string }[];
  const due = ({ iteration }: Step): string | null =>
    moniker === "count" ? String(iteration) : (frames[Math.min(iteration, frames.length - 1)]?.text ?? null);
  const wrong = ok.find((step) => step.text !== due(step));
  if (wrong) return [`said ${wrong.text} at iteration ${wrong.iteration}`];
  const length = moniker === "count" ? Number(params["to"]) + 1 : frames.length;
  // A fork of the last step needs one more step to notice that it is done.
  const expected = Math.max(length, (parent_iteration ?? -1) + 2);
  return status === "done" && ok.length !== expected ? [`is done after ${ok.length} steps, not ${expected}`] : [];
}

/** A fork's history is its parent's up to the fork point, then its own. */
function checkFork({ session_id, parent_iteration }: Session, steps: Step[], parent: Step[] | undefined): string[] {
  const shared = parent_iteration ?? -1;
  const early = steps.filter(({ iteration, status }) => iteration <= shared && status === "ok");
  const theirs = (parent ?? []).filter(({ iteration, status }) => iteration <= shared && status === "ok");
  const violations = isDeepStrictEqual(early, theirs) ? [] : ["does not begin with its parent's steps"];
  if (steps.some((step) => step.iteration > shared && step.session_id !== session_id))
    violations.push("has steps of another session after its fork point");
  return violations;
}
