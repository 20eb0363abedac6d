import { type Action, newAction } from "../domain/action.ts";
import type { Message } from "../domain/conversation.ts";
import { jsonBytes } from "../domain/guidance-amount.ts";
import { isObject, type JsonObject, type JsonValue } from "../domain/json.ts";
import { bouncedAtOnce } from "../domain/receipt.ts";
import type { RunnerDependencies } from "./runner-dependencies.ts";

/** How many times a message may pass from agent to agent, counted from the last message of a person. */
const MOST_HOPS = 4;

/**
 * Agents hear each other only in a conversation they joined with the role `listener`, and only for a few hops after a person's
 * message: two agents cannot talk each other into a loop.
 */
export async function deliverToAgents(
  { store, limit }: Pick<RunnerDependencies, "store" | "limit">,
  message: Message,
  guidance: JsonValue[],
  traceparent?: string,
): Promise<{ message: Message; actions: Action[] }> {
  const hops = 1 + Math.max(0, ...guidance.map(hopsOf));
  if (hops > MOST_HOPS) return { message, actions: [] };
  const participants = await store.listParticipants(message.conversation_id);
  const listeners = participants.filter(
    ({ role, left_at, session_id }) =>
      role === "listener" && left_at === null && session_id !== null && session_id !== message.session_id,
  );
  const { text, data, agent_id, session_id, message_id, conversation_id } = message;
  const guidanceForOthers: JsonObject = {
    text,
    ...(data === null ? {} : { data }),
    agent_id,
    session_id,
    message_id,
    conversation_id,
    hops,
  };
  const actions: Action[] = [];
  for (const listener of listeners) {
    const action = newAction({
      action_type: "agent_input",
      agent_id: listener.agent_id,
      session_id: listener.session_id as string,
      payload: guidanceForOthers,
      metadata: { message_id, conversation_id, ...(traceparent !== undefined && { traceparent }) },
    });
    const room = await limit.take(action.session_id, jsonBytes(guidanceForOthers));
    // A listener without room does not get the message, and its action says so; the conversation has it anyway.
    actions.push(room.kind === "full" ? bouncedAtOnce(action, room.detail) : action);
    if (room.kind === "room") room.written();
  }
  return { message: { ...message, action_ids: actions.map(({ action_id }) => action_id) }, actions };
}

const hopsOf = (guidance: JsonValue): number =>
  isObject(guidance) && typeof guidance["hops"] === "number" ? guidance["hops"] : 0;
