import type { z } from "zod";
import type { JsonValue } from "../domain/json.ts";
import type { StepContext } from "../monikers/moniker.ts";
import type { Workspace } from "../monikers/tools/workspace.ts";

/** What a tool gets besides its arguments. */
export type ToolContext = {
  /** Aborts when the calling step is interrupted or times out, or its session is destroyed. */
  signal: AbortSignal;
  /** The folder of the agents' files. */
  workspace: Workspace;
  ids: StepContext["ids"];
};

/**
 * A user's tool, exported by a file in the folder `EVERSTEP_TOOLS`.
 *
 * - `input` checks the arguments and describes them to the model.
 * - `run` returns text, or JSON that the model gets as text. The model gets thrown errors as an error result.
 */
export type OwnTool<Args = unknown> = {
  /** Defaults to the name of the export, and for a default export to that of the file. */
  readonly name?: string;
  readonly description: string;
  readonly input: z.ZodType<Args>;
  /** Changes nothing. Default false. */
  readonly read_only?: boolean;
  /** A second call with the same arguments changes nothing more. Default false. */
  readonly idempotent?: boolean;
  /** May overwrite or delete existing data, so a person is asked first. Default false. */
  readonly destructive?: boolean;
  run(args: Args, context: ToolContext): JsonValue | Promise<JsonValue>;
};

/** Infers the type of the arguments. */
export const defineTool = <Args>(tool: OwnTool<Args>): OwnTool => tool;
