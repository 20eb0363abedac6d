import { z } from "zod";
import { idSchema, now } from "../../domain/ids.ts";
import { defineAction, enqueue, rejectEnded } from "../action-definition.ts";

/** Puts a session into a conversation, permanently. */
export const join = defineAction({
  payload: z.object({ conversation_id: idSchema }),
  target: "existing",
  // Joining also adds a participant: see `Conversations.join`.
  route: null,
  takes_effect_at_once: true,
  prepare: enqueue,
  handle({ payload: { conversation_id } }, session) {
    if (session.conversation_id === conversation_id) return { kind: "ok" };
    if (session.conversation_id !== null) return { kind: "rejected", reason: alreadyInConversation(session) };
    return { kind: "ok", session: { ...session, conversation_id, updated_at: now() } };
  },
  handleEnded: rejectEnded,
});

export const alreadyInConversation = ({
  session_id,
  conversation_id,
}: {
  session_id: string;
  conversation_id: string | null;
}) => `session ${session_id} is already in conversation ${conversation_id}; start or fork another session for this one`;
