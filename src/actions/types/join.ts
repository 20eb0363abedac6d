import { z } from "zod";
import { idSchema, now } from "../../domain/ids.ts";
import { defineAction, enqueue, rejectEnded } from "../action-definition.ts";

/** Lets a session speak in a conversation; it stays there for good. */
export const join = defineAction({
  payload: z.object({ conversation_id: idSchema }),
  target: "existing",
  // Who joins is a participant too: see `Conversations.join`.
  route: null,
  takes_effect_at_once: true,
  prepare: enqueue,
  handle({ payload: { conversation_id } }, session) {
    if (session.conversation_id === conversation_id) return { kind: "ok" };
    if (session.conversation_id !== null) return { kind: "rejected", reason: speaksElsewhere(session) };
    return { kind: "ok", session: { ...session, conversation_id, updated_at: now() } };
  },
  handleEnded: rejectEnded,
});

export const speaksElsewhere = ({
  session_id,
  conversation_id,
}: {
  session_id: string;
  conversation_id: string | null;
}) =>
  `session ${session_id} speaks in conversation ${conversation_id}; start or fork another one for this conversation`;
