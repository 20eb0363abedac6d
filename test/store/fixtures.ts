import assert from "node:assert/strict";
import type { Action } from "../../src/domain/action.ts";
import type { AgentConfig } from "../../src/domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../../src/domain/conversation.ts";
import type { StepDelta } from "../../src/domain/event.ts";
import { newId } from "../../src/domain/ids.ts";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { Question } from "../../src/domain/question.ts";
import { NEW_SESSION_HISTORY, type Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import type { StoredWebhook } from "../../src/domain/webhook.ts";
import type { Batch, OwnedSession, Store } from "../../src/store/store.ts";

export const WORKER = "worker-1";

let lastTime = 0;
/** Never returns the same time twice, so that rows are ordered as they were built. */
export function aTime(): string {
  lastTime = Math.max(lastTime + 1, Date.now());
  return new Date(lastTime).toISOString();
}

export function aSession(overrides: Partial<Session> = {}): Session {
  const created_at = overrides.created_at ?? aTime();
  return {
    agent_id: "agent-1",
    session_id: newId(),
    conversation_id: null,
    moniker: "count",
    params: {},
    options: {},
    status: "running",
    stop_reason: null,
    iteration: -1,
    step_token: null,
    next_step_token: "0",
    result: null,
    context: {},
    pending_guidance: [],
    pending_action_ids: [],
    last_error: null,
    tokens_used: 0,
    created_action_id: newId(),
    parent_session_id: null,
    parent_iteration: null,
    created_at,
    updated_at: created_at,
    ...NEW_SESSION_HISTORY,
    ...overrides,
  };
}

export const aQuestion = (text: string, overrides: Partial<Question> = {}): Question => ({
  question_id: newId(),
  text,
  choices: null,
  schema: null,
  about: null,
  asked_at: aTime(),
  iteration: 0,
  ...overrides,
});

/** The session's next step, with its pending guidance. */
export function aStep(session: Session, overrides: Partial<Step> = {}): Step {
  const iteration = session.iteration + 1;
  return {
    id: newId(),
    created_at: aTime(),
    agent_id: session.agent_id,
    session_id: session.session_id,
    iteration,
    step_token: session.next_step_token,
    next_step_token: String(iteration + 1),
    status: "ok",
    text: `step ${iteration}`,
    data: null,
    state: { n: iteration },
    guidance: session.pending_guidance,
    notes: null,
    latency_ms: 1,
    tokens_used: 0,
    error: null,
    action_ids: session.pending_action_ids,
    moniker_version: null,
    cost_usd: 0,
    attempts: 1,
    calls: [],
    directives: null,
    crashes: 0,
    ...overrides,
  };
}

export function anAction(overrides: Partial<Action> = {}): Action {
  return {
    action_id: newId(),
    created_at: aTime(),
    action_type: "agent_interrupt",
    agent_id: "agent-1",
    session_id: "session-1",
    payload: {},
    metadata: {},
    urgency: 0,
    processed: false,
    processed_at: null,
    outcome: null,
    error: null,
    attempts: 0,
    run_at: null,
    receipt: "accepted",
    consumed_iteration: null,
    ...overrides,
  };
}

/** The action after a handler is done with it. */
export function settled(action: Action, overrides: Partial<Action> = {}): Action {
  const processed_at = action.processed_at ?? aTime();
  return { ...action, processed: true, processed_at, outcome: "ok", receipt: "delivered", ...overrides };
}

export function consumed(action: Action, iteration: number): Action {
  return settled(action, { receipt: "consumed", consumed_iteration: iteration });
}

export function aConversation(overrides: Partial<Conversation> = {}): Conversation {
  return {
    conversation_id: newId(),
    title: null,
    created_by: null,
    status: "open",
    tags: [],
    created_at: aTime(),
    ...overrides,
  };
}

export function aParticipant(overrides: Partial<Participant> = {}): Participant {
  return {
    participant_id: newId(),
    conversation_id: "conversation-1",
    user_id: "user-1",
    agent_id: null,
    session_id: null,
    role: null,
    joined_at: aTime(),
    left_at: null,
    ...overrides,
  };
}

export function aMessage(overrides: Partial<Message> = {}): Message {
  return {
    message_id: newId(),
    conversation_id: "conversation-1",
    created_at: aTime(),
    sender_type: "user",
    user_id: "user-1",
    agent_id: null,
    session_id: null,
    text: "hello",
    data: null,
    status: null,
    event_type: null,
    iteration: null,
    step_token: null,
    next_step_token: null,
    notes: null,
    action_ids: [],
    ...overrides,
  };
}

export function aCursor(overrides: Partial<SessionCursor> = {}): SessionCursor {
  return {
    session_id: "session-1",
    conversation_id: "conversation-1",
    message_id: newId(),
    updated_at: aTime(),
    ...overrides,
  };
}

export function anAgentConfig(overrides: Partial<AgentConfig> = {}): AgentConfig {
  return {
    agent_id: "agent-1",
    moniker: "count",
    params: {},
    options: {},
    description: null,
    updated_at: aTime(),
    ...overrides,
  };
}

export function aWebhook(overrides: Partial<StoredWebhook> = {}): StoredWebhook {
  return {
    webhook_id: newId(),
    url: "https://receiver.example/events",
    events: ["session.asks", "session.ended", "session.failed"],
    agent_id: null,
    secret: "whsec_c2VjcmV0",
    former_secret: null,
    former_secret_until: null,
    created_at: aTime(),
    updated_at: aTime(),
    ...overrides,
  };
}

export function aFork(parent: Session, at: Step, overrides: Partial<Session> = {}): Session {
  return aSession({
    agent_id: parent.agent_id,
    moniker: parent.moniker,
    iteration: at.iteration,
    step_token: at.step_token,
    next_step_token: at.next_step_token,
    result: at.text,
    context: at.state,
    parent_session_id: parent.session_id,
    parent_iteration: at.iteration,
    ...overrides,
  });
}

export type Advance = { batch: Batch; owned: OwnedSession; step: Step; message: Message | null };
export type AdvanceChoices = {
  text?: string | null;
  data?: JsonValue;
  state?: JsonObject;
  step?: Partial<Step>;
  session?: Partial<Session>;
  actions?: Action[];
};

/** The batch of the session's next step: its row, its message if the session is in a conversation, and the given actions. */
export function advance(owned: OwnedSession, choices: AdvanceChoices = {}): Advance {
  const { text, data, state, actions } = choices;
  const step = aStep(owned.session, {
    ...(text === undefined ? {} : { text }),
    ...(data === undefined ? {} : { data }),
    ...(state === undefined ? {} : { state }),
    ...choices.step,
  });
  const session: Session = {
    ...owned.session,
    iteration: step.iteration,
    step_token: step.step_token,
    next_step_token: step.next_step_token,
    result: step.data ?? step.text,
    context: step.state,
    pending_guidance: [],
    pending_action_ids: [],
    tokens_used: owned.session.tokens_used + step.tokens_used,
    updated_at: step.created_at,
    ...choices.session,
  };
  const message = messageOf(step, session.conversation_id);
  const batch: Batch = {
    sessions: [{ kind: "update", session, owner: owned.owner }],
    steps: [step],
    ...(message && { messages: [message] }),
    ...(actions && { actions }),
  };
  return { batch, owned: written(owned, session), step, message };
}

/** The batch of a failed attempt: an `error` row, without advancing the iteration. */
export function failedStep(owned: OwnedSession, overrides: Partial<Step> = {}): Advance {
  const step = aStep(owned.session, {
    status: "error",
    text: null,
    error: "the model did not answer",
    state: owned.session.context,
    guidance: [],
    action_ids: [],
    next_step_token: owned.session.next_step_token,
    ...overrides,
  });
  const session: Session = { ...owned.session, last_error: step.error, updated_at: step.created_at };
  const batch: Batch = { sessions: [{ kind: "update", session, owner: owned.owner }], steps: [step] };
  return { batch, owned: written(owned, session), step, message: null };
}

/** The batch that delivers an action's guidance to the session. */
export function deliver(owned: OwnedSession, action: Action): { batch: Batch; owned: OwnedSession; action: Action } {
  const delivered = settled(action);
  const session: Session = {
    ...owned.session,
    pending_guidance: [...owned.session.pending_guidance, action.payload["guidance"] ?? action.payload],
    pending_action_ids: [...owned.session.pending_action_ids, action.action_id],
    updated_at: aTime(),
  };
  const batch: Batch = { sessions: [{ kind: "update", session, owner: owned.owner }], actions: [delivered] };
  return { batch, owned: written(owned, session), action: delivered };
}

/** The owned session after the row was written. */
export const written = ({ owner }: OwnedSession, session: Session): OwnedSession => ({
  session,
  owner: { ...owner, revision: owner.revision + 1 },
  after_crash: false,
});

/** A commit that must succeed. */
export async function mustCommit(store: Store, batch: Batch): Promise<void> {
  assert.deepEqual(await store.commit(batch), { kind: "committed" });
}

/** Commits a new session that `worker` owns. */
export async function mustCreate(store: Store, session: Session = aSession(), worker = WORKER): Promise<OwnedSession> {
  await mustCommit(store, { sessions: [{ kind: "create", session, worker }] });
  return { session, owner: { worker, epoch: 1, revision: 0 }, after_crash: false };
}

/** Commits the session's next step. */
export async function mustAdvance(store: Store, owned: OwnedSession, choices?: AdvanceChoices): Promise<Advance> {
  const next = advance(owned, choices);
  await mustCommit(store, next.batch);
  return next;
}

function messageOf(step: Step, conversation_id: string | null): Message | null {
  if (conversation_id === null || step.text === null) return null;
  const { agent_id, session_id, text, data, iteration, step_token, next_step_token, created_at } = step;
  const said = { agent_id, session_id, text, data, iteration, step_token, next_step_token, created_at };
  return aMessage({ ...said, conversation_id, sender_type: "agent", user_id: null });
}

/** Text of a running step. */
export const deltaOf = (event_seq: number, text: string, more: Partial<StepDelta> = {}): StepDelta => ({
  session_id: "session",
  conversation_id: null,
  iteration: 0,
  action_ids: [],
  event_seq,
  text,
  ...more,
});
