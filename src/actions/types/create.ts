import { z } from "zod";
import type { Participant } from "../../domain/conversation.ts";
import { idSchema, newId } from "../../domain/ids.ts";
import { jsonObjectSchema } from "../../domain/json.ts";
import { requestedOptionsSchema, type Session } from "../../domain/session.ts";
import { defineAction, refusedOptions } from "../action-definition.ts";
import { actionOf } from "../action-request.ts";
import { newSession } from "../new-session.ts";

/** The session is written together with the request, so its id can be used at once. */
export const create = defineAction({
  payload: z.object({
    moniker: z.string().min(1).max(200).optional(),
    params: jsonObjectSchema.optional(),
    options: requestedOptionsSchema.optional(),
    conversation_id: idSchema.optional(),
  }),
  target: "new",
  route: null,
  takes_effect_at_once: false,
  async prepare(request, target, parts) {
    const { store } = parts;
    const { payload } = request;
    const creation = newSession({ ...target, ...payload }, await store.getAgentConfig(target.agent_id), parts);
    if (creation.kind !== "session") return creation;
    const { session } = creation;
    // Checks the agent's configured options too: what they refer to may no longer exist.
    const refusal = refusedOptions(session.options, parts);
    if (refusal) return refusal;
    if (session.conversation_id !== null && !(await store.getConversation(session.conversation_id)))
      return { kind: "unknown", what: "conversation" };
    const named = { ...request, payload: { ...payload, moniker: session.moniker } };
    const actions = [actionOf(named, session, session.created_action_id)];
    const batch = { actions, participants: participantsOf(session) };
    return {
      kind: "prepared",
      rows: () => ({ kind: "session", session, batch, named_moniker: payload.moniker }),
    };
  },
  handle: () => ({ kind: "ok" }),
  // The creation succeeded even if the session has ended since.
  handleEnded: () => ({ kind: "ok" }),
});

function participantsOf({ conversation_id, agent_id, session_id, created_at }: Session): Participant[] {
  if (conversation_id === null) return [];
  const member = { user_id: null, agent_id, session_id, role: null };
  return [{ participant_id: newId(), conversation_id, ...member, joined_at: created_at, left_at: null }];
}
