import type { JsonObject, JsonValue } from "../../../domain/json.ts";
import type { Question } from "../../../domain/question.ts";
import type { Session, SessionStatus } from "../../../domain/session.ts";
import type { Step } from "../../../domain/step.ts";
import type { Control, CostGroup } from "../state/jobs.ts";

export type AgentStatus = "ready" | "busy" | "away";

/** The agent's chat as its runtime knows it. */
export type ChatState = {
  status: "ready" | "busy" | "asks" | "paused" | "failed";
  error: string | null;
  /** Names of the loaded contexts. */
  loaded: string[];
};

export type ResetOutcome =
  | { kind: "reset" }
  /** The agent has no such endpoint. */
  | { kind: "missing" }
  | { kind: "timeout" }
  | { kind: "refused"; reason: string };

/** The fate of a question whose end nobody saw. */
export type Recovered =
  | { kind: "answered"; text: string; tokens_used: number }
  | { kind: "failed"; reason: string }
  /** The agent is working on it. */
  | { kind: "pending" }
  /** It never arrived, or the agent cannot say. */
  | { kind: "unknown" };

/** A question that was asked under this id, in this session of the agent. */
export type QuestionRef = { request_id: string; session_id: string | null };

export type ControlOutcome = { kind: "done" } | { kind: "rejected"; reason: string };

/** How a request ended. `iteration`: the step that used it, if any. */
export type Receipt = { kind: "done"; iteration: number | null } | { kind: "rejected"; reason: string };

export type Costs = {
  since: string;
  total: CostSum;
  /** The most expensive first, or the latest day. */
  groups: (CostSum & { key: string | null })[];
};
type CostSum = { sessions: number; tokens_used: number; cost_usd: number };

/** Who sends something, and the id by which it can be found again. */
export type Sender = { user_id: string; request_id: string };

/** The call failed; the message is for a person. */
export class PlatformError extends Error {
  override readonly name = "PlatformError";
}

/** The agent failed to answer; asking again is up to the person. */
export class AgentFailedError extends Error {
  override readonly name = "AgentFailedError";
}

/** The connection to the agent was lost during a question: the fate of the answer is unknown. */
export class AgentLostError extends Error {
  override readonly name = "AgentLostError";
}

/**
 * The only way from the bot to the agent and to the runtime behind it.
 *
 * - There is one chat, shared by everyone. A `chat` that is not null is a thread's own session of the runtime, created by its first
 *   question.
 * - `connect` starts to keep a connection up, reconnecting whenever it is lost; `close` ends it.
 * - `ask` is called with one question at a time, after `ready` has resolved.
 * - Methods about sessions throw `PlatformError` if the runtime cannot be reached or refuses.
 */
export interface PlatformClient {
  connect(): void;
  close(): Promise<void>;
  readonly status: AgentStatus;
  readonly session_id: string | null;
  /** The number of tokens of the last answer. */
  readonly last_tokens_used: number;
  /** Resolves when a question can be asked. */
  ready(signal: AbortSignal): Promise<void>;
  /**
   * The answer's text as it arrives. Throws `AgentFailedError` or `AgentLostError`. After `onRestart` the answer starts over, and the text
   * so far is void.
   */
  ask(
    text: string,
    request_id: string,
    onRestart: () => void,
    chat: string | null,
  ): AsyncGenerator<string, void, undefined>;
  recover(question: QuestionRef): Promise<Recovered>;
  /** Stops the answer in flight, if the agent can. */
  stop(chat: string | null): Promise<void>;
  reset(): Promise<ResetOutcome>;
  /** Null if there is no runtime to ask. */
  chat(chat: string | null): Promise<ChatState | null>;

  sessions(): Promise<Session[]>;
  /** By its id, its agent's id, or the beginning of its id. */
  findSessions(name: string): Promise<Session[]>;
  control(session_id: string, verb: Control, user_id: string): Promise<ControlOutcome>;
  /** Returns the action's id. It is one action, however often it is called with the same `request_id`. */
  guide(session_id: string, text: string, sender: Sender): Promise<string>;
  /** The same for an answer to a question. */
  answer(session_id: string, answer: Answer, sender: Sender): Promise<string>;
  /** The action of an earlier request; null if it never arrived. */
  submitted(session_id: string, request_id: string): Promise<string | null>;
  /** Waits until an action is final, however long that takes. Null if the wait was aborted or the runtime has forgotten the action. */
  receipt(session_id: string, action_id: string, signal: AbortSignal): Promise<Receipt | null>;
  /** Sessions that need a person: they have a question, failed, are held or reached a limit. */
  inbox(): Promise<Session[]>;
  /** Starting and forking create one session, however often they are called with the same `session_id`. */
  start(request: StartRequest, sender: Sender): Promise<ControlOutcome>;
  fork(session_id: string, request: ForkRequest, sender: Sender): Promise<ControlOutcome>;
  costs(by: CostGroup): Promise<Costs>;
  /** The steps after an iteration, past and future, and the session's questions, until it ends. */
  watch(session_id: string, after_iteration: number, follower: SessionFollower): Disposable;
}

export type Answer = { answer: JsonValue; question_id: string };
export type StartRequest = { session_id: string; agent_id: string; moniker: string; params: JsonObject };
export type ForkRequest = { session_id: string; iteration: number; guidance?: string };

export type SessionFollower = {
  step(step: Step): void;
  /** Called after each change of the session with its open question, if any. */
  asks(question: Question | null): void;
  ended(status: SessionStatus): void;
  /** The server refuses to be followed: the session is gone, or the token is no longer valid. */
  refused(reason: string): void;
};
