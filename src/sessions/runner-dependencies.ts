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

/** Told of what happens, for figures and logs. */
export type RunnerObserver = {
  stepCommitted(step: Step): void;
  /** How long a commit took, in milliseconds. */
  committed(ms: number): void;
  retried(session: Session, error: unknown): void;
};

/** Rows that are written with a step. `written` is called once they are in the store, or never will be. */
export type StepRows = { sessions: Session[]; actions: Action[]; participants: Participant[]; written: () => void };

export type RunnerDependencies = {
  store: Store;
  slots: StepSlots;
  /** One slot, for steps that may have brought the process down. */
  probation: StepSlots;
  /** The language model of a session with these options. An error says why it can have none. */
  llm: (options: SessionOptions) => StepContext["llm"] | Promise<StepContext["llm"]>;
  tools: ToolFactory;
  onDelta: (delta: Omit<StepDelta, "session_id" | "conversation_id"> & { session: Session }) => void;
  observer: RunnerObserver;
  /** Takes room for guidance that a session is told, until it is written. */
  limit: {
    take(
      session_id: string,
      bytes: number,
    ): Promise<{ kind: "room"; written: () => void } | { kind: "full"; detail: string }>;
  };
  /** The rows of what a frame asks for beside its step. Throws a `StepError` where that cannot be done. */
  prepareActions(
    requests: readonly FrameAction[],
    sender: Pick<Session, "agent_id" | "session_id"> & { iteration: number; traceparent?: string | undefined },
  ): Promise<StepRows>;
  /** Sessions that are to run no step yet. */
  hold: Pick<StartHold, "holds">;
  /** A step of the session begins; what is returned is called at its end. */
  watch: (session_id: string) => () => void;
  /** Whether a step's row keeps what models and tools were asked and answered, not only that they were. */
  keep_calls: boolean;
  /** Absent where nothing is traced. */
  tracer?: Tracer | undefined;
  /** Milliseconds that a destroyed session's step may take to finish. */
  destroy_grace_ms: number;
};
