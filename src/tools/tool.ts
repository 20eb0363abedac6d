import type { JsonObject, JsonValue } from "../domain/json.ts";
import type { Ask } from "../domain/question.ts";
import type { SessionOptions } from "../domain/session.ts";
import type { FrameAction } from "../domain/step-frame.ts";
import type { OfferedTool, ServerStatus } from "../domain/tool-list.ts";
import type { StepContext } from "../monikers/moniker.ts";
import type { Workspace } from "../monikers/tools/workspace.ts";

export type { OfferedTool, ServerStatus, ToolInfo, ToolPolicy } from "../domain/tool-list.ts";

/** The outcome of a call. */
export type ToolOutcome =
  /** Text for the model, and actions to commit with the step. A tool's own error is a result. */
  | { kind: "result"; text: string; is_error: boolean; actions?: FrameAction[] }
  /**
   * A person's answer is the result. If the tool must be called again, `resume` is passed back with the answer; null: it need
   * not be.
   */
  | { kind: "ask"; ask: Ask; until?: string; resume: JsonValue }
  /** The session rests until the time, until these child sessions have ended, or until guidance arrives. */
  | { kind: "wait"; until?: string; session_ids?: string[] };

/** The tools of one session in one step. */
export type SessionTools = {
  readonly workspace: Workspace;
  /** All tools, sorted by name; the policy is the session's. */
  list(): Promise<OfferedTool[]>;
  /**
   * Calls a tool. If its policy is `ask`, the caller must have asked; a denied tool is refused. Wrong arguments, an unknown
   * tool and a disconnected server are results with `is_error`. An abort of the step's signal throws its reason.
   */
  call(name: string, args: JsonObject, answered?: { answer: JsonValue; resume: JsonValue }): Promise<ToolOutcome>;
  /** Instructions to read when needed, sorted by name. */
  skills(): Promise<Skill[]>;
};

/** Instructions for one kind of work. `path` is their folder, as agents name it. */
export type Skill = { name: string; description: string; path: string };

/** The step that tools are created for. */
export type ToolStep = Pick<StepContext, "ids" | "signal" | "emit" | "is_rerun" | "traceparent"> & {
  options: SessionOptions;
};
export type ToolFactory = (step: ToolStep) => SessionTools;

/** All tools of a process, for people to inspect. */
export type ToolDirectory = {
  /** Sorted by name, with the policies for a session with these options. */
  list(options?: Pick<SessionOptions, "tools">): Promise<OfferedTool[]>;
  servers(): ServerStatus[];
  /** Calls a read-only tool for a person who wants to see its result. Nothing is stored. */
  try(name: string, args: JsonObject, signal: AbortSignal): Promise<ToolTrial>;
};

/** The outcome of trying a tool; `reason` says why it was not called. */
export type ToolTrial =
  | { kind: "called"; outcome: ToolOutcome; latency_ms: number }
  | { kind: "refused"; reason: string }
  | { kind: "unknown" };
