import type { JsonObject, JsonValue } from "../domain/json.ts";
import type { Workspace } from "../monikers/tools/workspace.ts";
import type { ServerStatus, ToolInfo, ToolOutcome, ToolStep } from "./tool.ts";
import type { ToolOutputs } from "./tool-outputs.ts";

/** A tool under the name that it has at its server. */
export type ServerTool = ToolInfo & {
  /**
   * It does nothing beyond the workspace and the frame of its step, so that it may be called in a step that runs again only to be
   * looked at.
   */
  leaves_no_trace?: true;
};

/** What a call knows beside its arguments. */
export type ToolCallContext = ToolStep & {
  workspace: Workspace;
  /** Of the calls that its step makes, from 0. */
  call_number: number;
  /** Where files are kept that the call brings. */
  outputs: ToolOutputs;
  /** A person's answer to what the tool asked when it was called before. */
  answered?: { answer: JsonValue; resume: JsonValue };
};

/**
 * Tools that belong together.
 *
 * - `tools` waits for a server that has just been started, but not without end: then it answers what is known.
 * - `call` checks the arguments. What goes wrong with the call is a result with `is_error`; an abort throws the signal's reason.
 */
export interface ToolServer {
  readonly name: string;
  readonly status: ServerStatus;
  tools(): Promise<readonly ServerTool[]>;
  call(tool: string, args: JsonObject, context: ToolCallContext): Promise<ToolOutcome>;
}

export const toolResult = (text: string): ToolOutcome => ({ kind: "result", text, is_error: false });
export const toolError = (text: string): ToolOutcome => ({ kind: "result", text, is_error: true });
