import type { Action } from "../../../src/domain/action.ts";
import type { AgentConfig } from "../../../src/domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../../../src/domain/conversation.ts";
import { newId } from "../../../src/domain/ids.ts";
import type { Session } from "../../../src/domain/session.ts";
import type { Batch, Store } from "../../../src/store/store.ts";
import {
  aConversation,
  aCursor,
  aMessage,
  anAction,
  anAgentConfig,
  aParticipant,
  aSession,
  WORKER,
} from "../fixtures.ts";

/** One row of every table except steps, all with the same id, so that a test can read all of them or none. */
export type World = {
  session: Session;
  action: Action;
  conversation: Conversation;
  participant: Participant;
  message: Message;
  cursor: SessionCursor;
  agent_config: AgentConfig;
};

export const NOTHING: { [row in keyof World]: null } = {
  session: null,
  action: null,
  conversation: null,
  participant: null,
  message: null,
  cursor: null,
  agent_config: null,
};

export function aWorld(id: string = newId()): World {
  const ids = { agent_id: id, session_id: id, conversation_id: id };
  return {
    session: aSession({ ...ids, params: { id }, result: { id } }),
    action: anAction({ agent_id: id, session_id: id, action_id: id, payload: { id }, metadata: { id } }),
    conversation: aConversation({ conversation_id: id, title: id, created_by: id, tags: [id] }),
    participant: aParticipant({ ...ids, participant_id: id, user_id: null, role: id }),
    message: aMessage({ ...ids, message_id: id, user_id: id, text: id, data: [id] }),
    cursor: aCursor({ session_id: id, conversation_id: id, message_id: id }),
    agent_config: anAgentConfig({ agent_id: id, description: id, options: { max_steps: 3 } }),
  };
}

export function batchOf(world: World): Batch {
  return {
    sessions: [{ kind: "create", session: world.session, worker: WORKER }],
    actions: [world.action],
    conversations: [{ kind: "create", conversation: world.conversation }],
    participants: [world.participant],
    messages: [world.message],
    cursors: [world.cursor],
    agent_configs: [world.agent_config],
  };
}

/** The rows in the store; null for those it does not have. */
export async function readWorld(
  store: Store,
  { session, action, conversation, participant, message, cursor, agent_config }: World,
): Promise<{ [row in keyof World]: World[row] | null }> {
  return {
    session: await store.getSession(session.session_id),
    action: await store.getAction(action.action_id),
    conversation: await store.getConversation(conversation.conversation_id),
    participant: await store.getParticipant(participant.participant_id),
    message: await store.getMessage(message.message_id),
    cursor: await store.getCursor({ session_id: cursor.session_id, conversation_id: cursor.conversation_id }),
    agent_config: await store.getAgentConfig(agent_config.agent_id),
  };
}

/** Both batches as one, the first one's rows first. */
export function joined(first: Batch, second: Batch): Batch {
  const tables = new Set([...Object.keys(first), ...Object.keys(second)]) as Set<
    Exclude<keyof Batch, "only_if_queue_empty">
  >;
  return Object.fromEntries([...tables].map((table) => [table, [...(first[table] ?? []), ...(second[table] ?? [])]]));
}
