import type { Action } from "../domain/action.ts";
import type { Participant } from "../domain/conversation.ts";
import type { StepDelta } from "../domain/event.ts";
import type { Session, SessionOptions } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import type { FrameAction } from "../domain/step-frame.ts";
import type { StepContext } from "../monikers/moniker.ts";
import type { Store } from "../store/store.ts";
import type { ToolFactory } from "../tools/tool.ts";
import type { Tracer } from "../tracing/tracer.ts";
import type { StartHold } from "./start-hold.ts";
import type { StepSlots } from "./step-slots.ts";

/** Notified of events, for metrics and logs. */
export type RunnerObserver = {
  stepCommitted(step: Step): void;
  /** How long a commit took, in milliseconds. */
  committed(ms: number): void;
  retried(session: Session, error: unknown): void;
};

/** Rows written together with a step. Call `written` once they are in the store or their write failed. */
export type StepRows = { sessions: Session[]; actions: Action[]; participants: Participant[]; written: () => void };

export type RunnerDependencies = {
  store: Store;
  slots: StepSlots;
  /** A single slot, for steps that may have crashed the process. */
  probation: StepSlots;
  /** The language model for a session with these options. Throws if there is none. */
  llm: (options: SessionOptions) => StepContext["llm"] | Promise<StepContext["llm"]>;
  tools: ToolFactory;
  onDelta: (delta: Omit<StepDelta, "session_id" | "conversation_id"> & { session: Session }) => void;
  observer: RunnerObserver;
  /** Reserves room for a session's guidance until it is written. */
  limit: {
    take(
      session_id: string,
      bytes: number,
    ): Promise<{ kind: "room"; written: () => void } | { kind: "full"; detail: string }>;
  };
  /** The rows for a frame's actions. Throws a `StepError` if an action is impossible. */
  prepareActions(
    requests: readonly FrameAction[],
    sender: Pick<Session, "agent_id" | "session_id"> & { iteration: number; traceparent?: string | undefined },
  ): Promise<StepRows>;
  /** Sessions that may not run a step yet. */
  hold: Pick<StartHold, "holds">;
  /** Called when a step of the session begins; the returned function is called at its end. */
  watch: (session_id: string) => () => void;
  /** Whether a step's row keeps the contents of model and tool calls, not only that they happened. */
  keep_calls: boolean;
  /** Absent if tracing is off. */
  tracer?: Tracer | undefined;
  /** How long a destroyed session's step may take to finish, in milliseconds. */
  destroy_grace_ms: number;
};
