import type { JsonObject, JsonValue } from "../domain/json.ts";
import type { Workspace } from "../monikers/tools/workspace.ts";
import type { ServerStatus, ToolInfo, ToolOutcome, ToolStep } from "./tool.ts";
import type { ToolOutputs } from "./tool-outputs.ts";

/** A tool under its name at the server. */
export type ServerTool = ToolInfo & {
  /** It affects only the workspace and its step's frame, so it may be called in a rerun. */
  leaves_no_trace?: true;
};

/** What a call gets besides its arguments. */
export type ToolCallContext = ToolStep & {
  workspace: Workspace;
  /** The number of the call within its step, from 0. */
  call_number: number;
  /** Where the call's files are stored. */
  outputs: ToolOutputs;
  /** A person's answer to the question that the tool asked in an earlier call. */
  answered?: { answer: JsonValue; resume: JsonValue };
};

/**
 * A group of tools.
 *
 * - `tools` waits a limited time for a server that was just started, then returns what is known.
 * - `call` checks the arguments. A failed call is a result with `is_error`; an abort throws the signal's reason.
 */
export interface ToolServer {
  readonly name: string;
  readonly status: ServerStatus;
  tools(): Promise<readonly ServerTool[]>;
  call(tool: string, args: JsonObject, context: ToolCallContext): Promise<ToolOutcome>;
}

export const toolResult = (text: string): ToolOutcome => ({ kind: "result", text, is_error: false });
export const toolError = (text: string): ToolOutcome => ({ kind: "result", text, is_error: true });
