import type { FrameIn, FrameOut } from "../../domain/step-frame.ts";
import type { VersionedMoniker } from "../catalog.ts";
import type { StepContext } from "../moniker.ts";
import type { Description, Descriptions } from "./description.ts";

/**
 * A worker outside of this process that runs steps, in any language.
 *
 * - `describe` asks for its monikers.
 * - `run` runs one step. It ends soon after the context's signal aborts, and cancels the worker's step.
 * - Errors are `StepError`s that name the worker.
 */
export interface Remote {
  /** Its name for people: its address without secrets, or its file. */
  readonly name: string;
  describe(signal: AbortSignal): Promise<Descriptions>;
  run(moniker: string, frame: FrameIn, context: StepContext): Promise<FrameOut>;
  /** Closes its resources once its steps are over. */
  stop(): Promise<void>;
}

/** The body of a step request. */
export const stepRequest = (moniker: string, frame: FrameIn, context: StepContext): string => {
  const { params, ids, attempt, deadline = null, is_rerun, traceparent } = context;
  return JSON.stringify({
    moniker,
    frame,
    context: { params, ids, attempt, deadline, ...(is_rerun && { is_rerun }), ...(traceparent && { traceparent }) },
  });
};

export function remoteMoniker(
  remote: Remote,
  description: Description,
  onError: (error: unknown) => void,
): VersionedMoniker {
  const { name, options, first_step } = description;
  return {
    name,
    kind: description.kind,
    description: description.description,
    params: description.params,
    params_schema: description.params_schema,
    version: description.version,
    remote: remote.name,
    ...(options && { options }),
    ...(first_step !== undefined && { first_step }),
    async step(frame, context) {
      try {
        return await remote.run(name, frame, context);
      } catch (error) {
        onError(error);
        throw error;
      }
    },
  };
}
