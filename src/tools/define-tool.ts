import type { z } from "zod";
import type { JsonValue } from "../domain/json.ts";
import type { StepContext } from "../monikers/moniker.ts";
import type { Workspace } from "../monikers/tools/workspace.ts";

/** What a tool is given beside its arguments. */
export type ToolContext = {
  /** Aborts when the step that called is interrupted, timed out or its session destroyed. */
  signal: AbortSignal;
  /** The only folder that agents' files are in. */
  workspace: Workspace;
  ids: StepContext["ids"];
};

/**
 * A tool of somebody's own: a file in the folder `EVERSTEP_TOOLS` exports it.
 *
 * - `input` checks the arguments, and tells the model what they are.
 * - `run` answers text, or JSON that is given to the model as text. What it throws is given to the model as an error.
 */
export type OwnTool<Args = unknown> = {
  /** By default the name of the export, and for a default export that of the file. */
  readonly name?: string;
  readonly description: string;
  readonly input: z.ZodType<Args>;
  /** Changes nothing. False by default. */
  readonly read_only?: boolean;
  /** A second call with the same arguments changes nothing more. False by default. */
  readonly idempotent?: boolean;
  /** May overwrite or delete what is there, so that a person is asked first. False by default. */
  readonly destructive?: boolean;
  run(args: Args, context: ToolContext): JsonValue | Promise<JsonValue>;
};

/** Keeps the arguments' type while a tool is written. */
export const defineTool = <Args>(tool: OwnTool<Args>): OwnTool => tool;
