import { EverstepError } from "../../domain/errors.ts";
import { StepError } from "../moniker.ts";

type GoneOptions = {
  /** It was unreachable before it received anything; a retry uses up no attempt. */
  outage?: boolean;
  retry_after_ms?: number | undefined;
  cause?: unknown;
};

/** A moniker's worker is unreachable, or disconnected during the step. */
export const remoteGone = (remote: string, why: string, { outage = false, retry_after_ms, cause }: GoneOptions = {}) =>
  new StepError("remote_gone", `${remote} ${why}; check that it runs`, {
    retryable: true,
    outage,
    retry_after_ms,
    cause,
  });

/** The worker violated the protocol. It would do so again, so there is no retry. */
export const remoteMisbehaved = (
  remote: string,
  why: string,
  { retryable = false, cause }: { retryable?: boolean; cause?: unknown } = {},
) =>
  new StepError("remote_misbehaved", `${remote} ${why}; docs/other-languages.md has the format`, { retryable, cause });

/** The same outside of a step, for the log and the list of monikers. */
export function describeFailed(error: unknown): EverstepError {
  if (error instanceof EverstepError) return error;
  const isKnown = error instanceof StepError && error.code === "remote_misbehaved";
  const [what = "", next = "check that it runs"] = (error instanceof Error ? error.message : String(error)).split(
    "; ",
    2,
  );
  return new EverstepError(isKnown ? "remote_misbehaved" : "remote_gone", what, next, error);
}
