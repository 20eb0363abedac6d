import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import { type JsonValue, jsonObjectSchema, jsonSchema } from "../../domain/json.ts";
import { deliveredAtOnce } from "../../domain/receipt.ts";
import { requestedOptionsSchema, type Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import type { Store } from "../../store/store.ts";
import { defineAction, type RequestRows } from "../action-definition.ts";
import { actionOf, type CheckedRequest } from "../action-request.ts";
import { forkChanges, newFork } from "../new-session.ts";
import { invalidField } from "../refusal.ts";

/** A session that continues from one of another's steps. It is written together with the request, like a creation. */
export const fork = defineAction({
  payload: z.object({
    iteration: z.int().min(0),
    /** The new session's id; generated if absent. */
    session_id: idSchema.optional(),
    guidance: jsonSchema.optional(),
    /** These replace what the fork would inherit. */
    state: jsonObjectSchema.optional(),
    params: jsonObjectSchema.optional(),
    options: requestedOptionsSchema.optional(),
    moniker: z.string().min(1).max(200).optional(),
  }),
  target: "existing",
  route: {
    verb: "fork",
    summary: "Start a new session from one of this session's steps",
    example: { iteration: 0, guidance: "Try it another way." },
    targets: ["session_id"],
    may_conflict: true,
  },
  takes_effect_at_once: false,
  async prepare(request, target, parts) {
    const { store } = parts;
    const parent = await store.getSession(target.session_id);
    if (!parent) return { kind: "unknown", what: "session" };
    const { iteration, session_id } = request.payload;
    const step = await stepOf(store, parent, iteration);
    if (!step)
      return invalidField(
        "iteration",
        parent.iteration < 0 ? "the session has no step yet" : `the session has iterations 0 to ${parent.iteration}`,
      );
    const changes = forkChanges(parent, request.payload, parts);
    if (changes.kind !== "changes") return changes;
    return {
      kind: "prepared",
      rows: () => rowsOf(request, parent, newFork(parent, step, { ...changes, session_id })),
    };
  },
  handle: () => ({ kind: "ok" }),
  handleEnded: () => ({ kind: "ok" }),
});

async function stepOf(store: Store, { session_id }: Session, iteration: number): Promise<Step | undefined> {
  const range = { min_iteration: iteration, max_iteration: iteration, limit: 1, offset: 0 };
  return (await store.listSteps({ session_id, status: "ok", ...range }))[0];
}

/** Guidance for the first step is in the new session from the start, so that no step can miss it. */
function rowsOf(
  request: CheckedRequest<{ guidance?: JsonValue | undefined; moniker?: string | undefined }>,
  { session_id: parent_session_id }: Session,
  session: Session,
): RequestRows {
  const payload = { ...request.payload, parent_session_id };
  const forking = actionOf({ ...request, payload }, session, session.created_action_id);
  const { guidance, moniker: named_moniker } = request.payload;
  if (guidance === undefined) return { kind: "session", session, batch: { actions: [forking] }, named_moniker };
  const guiding = deliveredAtOnce(
    actionOf({ ...request, action_type: "agent_interrupt", payload: { guidance } }, session),
  );
  const guided: Session = {
    ...session,
    status: "running",
    wake_at: null,
    rests_since: null,
    pending_guidance: [guidance],
    pending_action_ids: [guiding.action_id],
  };
  return { kind: "session", session: guided, batch: { actions: [forking, guiding] }, named_moniker };
}
