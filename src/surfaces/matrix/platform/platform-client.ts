import type { JsonValue } from "../../../domain/json.ts";
import type { Question } from "../../../domain/question.ts";
import type { Session } from "../../../domain/session.ts";
import type { Step } from "../../../domain/step.ts";
import type { Control } from "../state/jobs.ts";

export type AgentStatus = "ready" | "busy" | "away";

/** The agent's chat as its runtime knows it. */
export type ChatState = {
  status: "ready" | "busy" | "asks" | "paused" | "failed";
  error: string | null;
  /** Names of the contexts that are loaded. */
  loaded: string[];
};

export type ResetOutcome =
  | { kind: "reset" }
  /** The agent has no such endpoint. */
  | { kind: "missing" }
  | { kind: "timeout" }
  | { kind: "refused"; reason: string };

/** What became of a question that was begun and whose end nobody saw. */
export type Recovered =
  | { kind: "answered"; text: string; tokens_used: number }
  | { kind: "failed"; reason: string }
  /** The agent has it and works on it. */
  | { kind: "pending" }
  /** It never arrived, or the agent cannot tell. */
  | { kind: "unknown" };

/** A question that was asked under this id, in this session of the agent. */
export type Asked = { request_id: string; session_id: string | null };

export type ControlOutcome = { kind: "done" } | { kind: "rejected"; reason: string };

/** Who says something, and the id by which it can be found again. */
export type Sender = { user_id: string; request_id: string };

/** The call could not be made; the reason is for a person. */
export class PlatformError extends Error {
  override readonly name = "PlatformError";
}

/** The agent failed to answer, for a reason of its own: asking again is up to the person. */
export class AgentFailedError extends Error {
  override readonly name = "AgentFailedError";
}

/** The way to the agent was lost in the middle of a question: nothing is known of its answer. */
export class AgentLostError extends Error {
  override readonly name = "AgentLostError";
}

/**
 * The only way from the bot to the agent and to the runtime behind it.
 *
 * - There is one chat, shared by everyone; nothing here names a thread.
 * - `connect` begins to hold a connection, which comes back by itself whenever it is lost; `close` ends it.
 * - `ask` is called for one question at a time, once `ready` resolved.
 * - What concerns sessions throws `PlatformError` where the runtime cannot be reached or says no.
 */
export interface PlatformClient {
  connect(): void;
  close(): Promise<void>;
  readonly status: AgentStatus;
  readonly session_id: string | null;
  /** The count of the last answer's tokens. */
  readonly last_tokens_used: number;
  /** Resolves when a question can be asked. */
  ready(signal: AbortSignal): Promise<void>;
  /**
   * The answer's text as it comes. Throws `AgentFailedError` or `AgentLostError`. After `onRestart` the answer begins anew, and what
   * came before does not count.
   */
  ask(text: string, request_id: string, onRestart: () => void): AsyncGenerator<string, void, undefined>;
  recover(asked: Asked): Promise<Recovered>;
  /** Cuts the answer in flight short, as far as the agent can. */
  stop(): Promise<void>;
  reset(): Promise<ResetOutcome>;
  /** Null where there is no runtime that can tell. */
  chat(): Promise<ChatState | null>;

  sessions(): Promise<Session[]>;
  /** By its id, its agent's id, or the beginning of its id. */
  findSessions(name: string): Promise<Session[]>;
  control(session_id: string, verb: Control, user_id: string): Promise<ControlOutcome>;
  /** Once, however often it is called with the same `request_id`. */
  guide(session_id: string, text: string, sender: Sender): Promise<ControlOutcome>;
  /** The same for an answer to a question. */
  answer(session_id: string, answer: Answer, sender: Sender): Promise<ControlOutcome>;
  /** Steps after an iteration and those to come, and what the session asks, until it ends. */
  watch(session_id: string, after_iteration: number, follower: SessionFollower): Disposable;
}

export type Answer = { answer: JsonValue; question_id: string };

export type SessionFollower = {
  step(step: Step): void;
  /** Again after each change of the session: the question that is open. */
  asks(question: Question): void;
  ended(status: string): void;
};
