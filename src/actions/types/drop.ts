import { z } from "zod";
import { carriesGuidance } from "../../domain/action-type.ts";
import { idSchema, now } from "../../domain/ids.ts";
import { changeStatus, type Session } from "../../domain/session.ts";
import type { Moniker } from "../../monikers/moniker.ts";
import { startedAttempt } from "../../sessions/attempts.ts";
import { defineAction, enqueue, rejectEnded } from "../action-definition.ts";
import type { Refusal } from "../refusal.ts";

/** Takes back guidance that no step has used yet. The action that delivered it bounces in the same commit. */
export const drop = defineAction({
  payload: z.object({ action_id: idSchema }),
  target: "existing",
  // The route is `DELETE /api/actions/:action_id`.
  route: null,
  takes_effect_at_once: true,
  async prepare(request, target, { store }) {
    const { action_id } = request.payload;
    const action = await store.getAction(action_id);
    if (!action || action.session_id !== target.session_id) return { kind: "unknown", what: "action" };
    if (!carriesGuidance(action)) return conflict(action_id, "carries no guidance");
    if (action.receipt === "consumed") return conflict(action_id, `was used by step ${action.consumed_iteration}`);
    if (action.receipt === "bounced") return conflict(action_id, "has already bounced");
    return enqueue(request, target);
  },
  handle({ payload: { action_id } }, session, moniker, stepping) {
    const at = session.pending_action_ids.indexOf(action_id);
    if (at < 0) return { kind: "rejected", reason: `action ${action_id} has no pending guidance` };
    // The running step already has this guidance; its commit removes it from the session.
    if (stepping?.includes(action_id))
      return { kind: "rejected", reason: `the running step already has the guidance of action ${action_id}` };
    const remaining: Session = {
      ...session,
      pending_guidance: session.pending_guidance.toSpliced(at, 1),
      pending_action_ids: session.pending_action_ids.toSpliced(at, 1),
      updated_at: now(),
    };
    return { kind: "ok", session: stepping ? remaining : restingAgain(remaining, moniker), dropped: action_id };
  },
  handleEnded: rejectEnded,
});

/**
 * The session was only running because of the guidance taken back. Its question is open again; the time it was waiting for is
 * lost.
 */
function restingAgain(session: Session, { kind }: Moniker): Session {
  const mayRest = kind === "reactive" || session.question !== null;
  const isDue = startedAttempt(session)?.is_due === true;
  if (!mayRest || isDue || session.pending_guidance.length > 0) return session;
  const resting = session.question === null ? session : { ...session, rests_since: session.question.asked_at };
  return resting.status === "running" ? changeStatus(resting, "waiting") : resting;
}

const conflict = (action_id: string, why: string): Refusal => ({
  kind: "conflict",
  detail: `action ${action_id} ${why}`,
});
