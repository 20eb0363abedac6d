import type { JsonObject, JsonValue } from "../domain/json.ts";
import type { Ask } from "../domain/question.ts";
import type { SessionOptions } from "../domain/session.ts";
import type { FrameAction } from "../domain/step-frame.ts";
import type { OfferedTool, ServerStatus } from "../domain/tool-list.ts";
import type { StepContext } from "../monikers/moniker.ts";
import type { Workspace } from "../monikers/tools/workspace.ts";

export type { OfferedTool, ServerStatus, ToolInfo, ToolPolicy } from "../domain/tool-list.ts";

/** What came of a call. */
export type ToolOutcome =
  /** Text for the model, and what is to be written together with the step. A tool's own error is a result. */
  | { kind: "result"; text: string; is_error: boolean; actions?: FrameAction[] }
  /** A person's answer is the result. `resume` is handed back with it where the tool has to be called again; null: it need not. */
  | { kind: "ask"; ask: Ask; until?: string; resume: JsonValue }
  /** The session rests until the time comes or these sessions of its own have ended, or somebody says something. */
  | { kind: "wait"; until?: string; session_ids?: string[] };

/** The tools of one session in one step. */
export type SessionTools = {
  readonly workspace: Workspace;
  /** Those that there are, by name; the policy is the session's. */
  list(): Promise<OfferedTool[]>;
  /**
   * Calls a tool. Where its policy is `ask`, who calls asked before; one that is denied is refused. Arguments that do not fit, a tool
   * that is unknown and a server that is gone are results with `is_error`. An abort of the step's signal throws its reason.
   */
  call(name: string, args: JsonObject, answered?: { answer: JsonValue; resume: JsonValue }): Promise<ToolOutcome>;
  /** Instructions that can be read when they are needed, by name. */
  skills(): Promise<Skill[]>;
};

/** Instructions for one kind of work, kept in a folder. `path` is the folder, as agents name it. */
export type Skill = { name: string; description: string; path: string };

/** The step that tools are made for. */
export type ToolStep = Pick<StepContext, "ids" | "signal" | "emit" | "is_rerun" | "traceparent"> & {
  options: SessionOptions;
};
export type ToolFactory = (step: ToolStep) => SessionTools;

/** All tools of a process, for people to look at. */
export type ToolDirectory = {
  /** By name, as a session with these options has them. */
  list(options?: Pick<SessionOptions, "tools">): Promise<OfferedTool[]>;
  servers(): ServerStatus[];
};
