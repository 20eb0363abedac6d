import type { Action } from "../../src/domain/action.ts";
import { newId, now } from "../../src/domain/ids.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Batch, OwnedSession } from "../../src/store/store.ts";
import {
  aConversation,
  aCursor,
  advance,
  aMessage,
  anAction,
  anAgentConfig,
  aParticipant,
  aSession,
  consumed,
  deliver,
  failedStep,
} from "./fixtures.ts";

/**
 * The history that the writer writes and the check expects. A lane is an agent that runs one session after another.
 *
 * W1  A row's content is a function of its session and iteration, so that a reader can tell a correct row from a wrong one.
 * W2  Every commit is one attempt with a unique name, and all rows of its batch carry that name, so that a reader can tell rows
 *     of one batch from rows of two.
 */
export type Attempt = { key: string; name: string; session_id: string; batch: Batch };
export type Advanced = Attempt & { owned: OwnedSession };

export const laneNames = (count: number): string[] => Array.from({ length: count }, (_, index) => `lane-${index}`);
export const sessionIdOf = (lane: string, generation: number): string => `${lane}'s session ${generation}`;
export const conversationIdOf = (session_id: string): string => `${session_id} talks`;
export const actionIdOf = (session_id: string, iteration: number): string => `${session_id} guided at ${iteration}`;

/** How many steps a lane's sessions have; lanes differ, so that they do not end at the same time. */
export const lengthOf = (lane: string): number => 20 + ((Number(lane.slice("lane-".length)) * 17) % 50);
export const takesGuidance = (iteration: number): boolean => iteration % 4 === 1;
export const failsFirst = (iteration: number): boolean => iteration % 9 === 3;
export const guidanceOf = (session_id: string, iteration: number): JsonObject => ({
  advice: `for ${session_id} at ${iteration}`,
});
export const textOf = (session_id: string, iteration: number): string | null =>
  iteration % 3 === 2 ? null : `${session_id} says ${iteration}`;

/** Grows by one entry each step, changes in the middle, and has a key that comes and goes. */
export function stateOf(session_id: string, iteration: number): JsonObject {
  if (iteration < 0) return {};
  const entries = Array.from({ length: iteration + 1 }, (_, index) => ({
    index,
    text: `“${session_id}” é🙂 ${"x".repeat((index * 7) % 50)}`,
    seen: iteration - index > 5,
  }));
  return { n: iteration, ...(iteration % 2 ? { odd: true } : {}), entries, tail: "y".repeat((iteration * 13) % 90) };
}

export const keyOf = {
  creation: (session_id: string): string => `creation of ${session_id}`,
  submission: (action_id: string): string => `submission of ${action_id}`,
  delivery: (action_id: string): string => `delivery of ${action_id}`,
  failure: (session_id: string, iteration: number, name: string): string =>
    `failure of ${session_id} at ${iteration}, ${name}`,
  step: (session_id: string, iteration: number): string => `step of ${session_id} at ${iteration}`,
};

export function creation(lane: string, generation: number, worker: string): Advanced {
  const name = newId();
  const session_id = sessionIdOf(lane, generation);
  const conversation_id = conversationIdOf(session_id);
  const created_at = now();
  const params = { generation, attempt: name };
  const session = aSession({ agent_id: lane, session_id, conversation_id, params, created_at });
  const batch: Batch = {
    sessions: [{ kind: "create", session, worker }],
    conversations: [{ kind: "create", conversation: aConversation({ conversation_id, created_by: name }) }],
    participants: [aParticipant({ conversation_id, user_id: null, agent_id: lane, session_id, role: name })],
    agent_configs: [anAgentConfig({ agent_id: lane, description: name })],
  };
  const owned = { session, owner: { worker, epoch: 1, revision: 0 }, after_crash: false };
  return { key: keyOf.creation(session_id), name, session_id, batch, owned };
}

export function submission({ session }: OwnedSession): Attempt {
  const name = newId();
  const { agent_id, session_id } = session;
  const action_id = actionIdOf(session_id, session.iteration + 1);
  const guidance = guidanceOf(session_id, session.iteration + 1);
  const created_at = now();
  const conversation_id = conversationIdOf(session_id);
  const message = aMessage({ conversation_id, created_at, data: guidance, notes: name });
  const action = anAction({
    action_id,
    created_at,
    action_type: "agent_input",
    agent_id,
    session_id,
    payload: { guidance },
    metadata: { submitted: name },
  });
  return { key: keyOf.submission(action_id), name, session_id, batch: { messages: [message], actions: [action] } };
}

export function delivery(before: OwnedSession, action: Action): Advanced {
  const name = newId();
  const marked: Action = { ...action, metadata: { ...action.metadata, delivered: name } };
  const { batch, owned } = deliver(before, marked);
  return { key: keyOf.delivery(action.action_id), name, session_id: action.session_id, batch, owned };
}

export function failure(before: OwnedSession): Advanced {
  const name = newId();
  const { session_id, iteration } = before.session;
  const { batch, owned } = failedStep(before, { data: { attempt: name }, created_at: now() });
  return { key: keyOf.failure(session_id, iteration + 1, name), name, session_id, batch, owned };
}

/** The next step, with the actions whose guidance the session has. */
export function nextStep(before: OwnedSession, delivered: Action[]): Advanced {
  const name = newId();
  const { agent_id, session_id } = before.session;
  const iteration = before.session.iteration + 1;
  const used = delivered.map((action) => {
    const marked: Action = { ...action, metadata: { ...action.metadata, consumed: name } };
    return consumed(marked, iteration);
  });
  // The fixtures' clock runs ahead of the machine's under load, and the times here must precede those of a later writer.
  const created_at = now();
  const last = iteration + 1 === lengthOf(agent_id);
  const { batch, owned, message } = advance(before, {
    text: textOf(session_id, iteration),
    data: { attempt: name },
    state: stateOf(session_id, iteration),
    step: { created_at },
    session: last ? { status: "done", ended_at: created_at } : {},
    actions: used,
  });
  if (message) {
    const { conversation_id, message_id } = message;
    batch.cursors = [aCursor({ session_id, conversation_id, message_id })];
  }
  return { key: keyOf.step(session_id, iteration), name, session_id, batch, owned };
}
