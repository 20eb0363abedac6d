import { EverstepError } from "../domain/errors.ts";

/** After so many refusals of one commit whoever wants it written ends what it belongs to with the reason. */
export const MOST_REFUSALS = 3;

/**
 * Whether a commit failed because of what it holds or needs to read: trying it again is likely to fail again. A store that is
 * full, locked or out of reach takes the same commit later. Some reasons concern the whole store all the same, so whoever gives
 * a commit up tries it once more each time before it writes the end instead: a store that is well again takes the commit.
 */
export const isRefusal = (error: unknown): boolean =>
  !(error instanceof EverstepError) || error.code === "store_refused" || error.code === "store_corrupt";
