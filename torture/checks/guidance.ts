import { isDeepStrictEqual } from "node:util";
import type { Action } from "../../src/domain/action.ts";
import { carriesGuidance } from "../../src/domain/action-type.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import type { Step } from "../../src/domain/step.ts";
import type { Rows } from "../rows.ts";

type Use = { step: Step; guidance: JsonValue | undefined };

/** Invariants 3 and 4: every action settles, and its guidance is in exactly the step that its receipt names, or in none. */
export function checkGuidance({ actions, steps, sessions }: Rows): string[] {
  const uses = usesOf(steps);
  const violations = [...actions.values()].flatMap((action) => [
    ...checkEnd(action),
    ...(carriesGuidance(action) ? checkUse(action, uses.get(action.action_id) ?? []) : []),
  ]);
  for (const [action_id, [use]] of uses)
    if (!actions.has(action_id))
      violations.push(`step ${use?.step.id} used guidance of ${action_id}, which is unknown`);
  for (const { session_id, pending_guidance } of sessions.values())
    if (pending_guidance.length > 0) violations.push(`${session_id} rests with guidance that no step used`);
  return violations;
}

/** A fork also lists its parent's steps; each step counts once. */
function usesOf(steps: Rows["steps"]): Map<string, Use[]> {
  const uses = new Map<string, Use[]>();
  for (const [session_id, rows] of steps)
    for (const step of rows.filter((row) => row.session_id === session_id))
      for (const [at, action_id] of step.action_ids.entries())
        uses.set(action_id, [...(uses.get(action_id) ?? []), { step, guidance: step.guidance[at] }]);
  return uses;
}

function checkEnd({ action_id, action_type, processed, outcome, error, processed_at }: Action): string[] {
  const name = `${action_type} ${action_id}`;
  if (!processed || outcome === null || processed_at === null) return [`${name} never ended`];
  if (outcome === "failed") return [`${name} failed: ${error}`];
  return outcome === "rejected" && !error ? [`${name} was rejected without a reason`] : [];
}

function checkUse(action: Action, uses: Use[]): string[] {
  const { action_id, session_id, outcome, receipt, consumed_iteration } = action;
  const name = `guidance ${action_id} of ${session_id}`;
  if (uses.length > 1) return [`${name} is in ${uses.length} steps`];
  const [use] = uses;
  if (receipt !== "consumed") {
    if (use) return [`${name} is in step ${use.step.iteration}, its receipt says ${receipt}`];
    return outcome === "ok" && receipt !== "bounced" ? [`${name} ended as ${receipt}`] : [];
  }
  if (!use) return [`${name} was consumed at ${consumed_iteration}, where it is not`];
  if (use.step.iteration !== consumed_iteration || use.step.session_id !== session_id || use.step.status !== "ok")
    return [`${name} is in ${use.step.session_id} ${use.step.iteration}, its receipt says ${consumed_iteration}`];
  return isDeepStrictEqual(use.guidance, sentBy(action))
    ? []
    : [`${name} reached the step as ${JSON.stringify(use.guidance)}`];
}

/** The guidance that an action becomes: a text, a message as stored, an answer and who gave it, or the report of an end. */
function sentBy({ action_type, payload, metadata }: Action): JsonValue | undefined {
  const { user_id } = metadata;
  if (action_type === "agent_answer") return { ...payload, ...(user_id === undefined ? {} : { user_id }) };
  return "guidance" in payload ? payload["guidance"] : payload;
}

/** How many steps received each text and each message. */
export function heardOf(steps: Rows["steps"]): Map<string, number> {
  const heard = new Map<string, number>();
  for (const [session_id, rows] of steps)
    for (const step of rows.filter((row) => row.session_id === session_id))
      for (const said of step.guidance) {
        const { message_id } = Object(said) as { message_id?: string };
        // Answers and reports have no unique text; `usesOf` checks by action that each is in one step.
        if (typeof said !== "string" && message_id === undefined) continue;
        const key = typeof said === "string" ? said : `${session_id} ${message_id}`;
        heard.set(key, (heard.get(key) ?? 0) + 1);
      }
  return heard;
}
