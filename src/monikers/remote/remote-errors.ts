import { EverstepError } from "../../domain/errors.ts";
import { StepError } from "../moniker.ts";

type GoneOptions = {
  /** Nothing was asked of it yet: it cannot be reached, and trying again uses up no attempt. */
  outage?: boolean;
  retry_after_ms?: number | undefined;
  cause?: unknown;
};

/** The worker that runs a moniker is not there, or went away during the step. */
export const remoteGone = (remote: string, why: string, { outage = false, retry_after_ms, cause }: GoneOptions = {}) =>
  new StepError("remote_gone", `${remote} ${why}; see that it runs`, {
    retryable: true,
    outage,
    retry_after_ms,
    cause,
  });

/** What the worker sent is not what was agreed. Sent again it would be the same, so it is not tried again. */
export const remoteMisbehaved = (
  remote: string,
  why: string,
  { retryable = false, cause }: { retryable?: boolean; cause?: unknown } = {},
) =>
  new StepError("remote_misbehaved", `${remote} ${why}; docs/other-languages.md has the format`, { retryable, cause });

/** The same outside of a step, for those who read the log or the list of monikers. */
export function describeFailed(error: unknown): EverstepError {
  if (error instanceof EverstepError) return error;
  const isKnown = error instanceof StepError && error.code === "remote_misbehaved";
  const [what = "", next = "see that it runs"] = (error instanceof Error ? error.message : String(error)).split(
    "; ",
    2,
  );
  return new EverstepError(isKnown ? "remote_misbehaved" : "remote_gone", what, next, error);
}
