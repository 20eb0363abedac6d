import { EverstepError } from "../domain/errors.ts";

/** The errors of both engines, each written once. Engines say what happened, and translate the codes of their own libraries. */
export const closed = (): EverstepError =>
  new EverstepError(
    "store_closed",
    "the store was closed",
    "this is a fault in Everstep if it was not stopping; please report it",
  );

/** `next` where more than freeing space is to be said. */
export const full = (what: string, cause: unknown, next = "free some disk space; nothing was lost"): EverstepError =>
  new EverstepError("store_full", what, next, cause);

export const readOnly = (what: string, next: string, cause: unknown): EverstepError =>
  new EverstepError("store_read_only", what, next, cause);

export const unavailable = (what: string, next: string, cause?: unknown): EverstepError =>
  new EverstepError("store_unavailable", what, next, cause);

export const outOfReach = (why: string, cause?: unknown): EverstepError =>
  unavailable(
    `PostgreSQL is out of reach (${why})`,
    "check that it runs and can be reached; Everstep goes on by itself once it is back",
    cause,
  );
export const unanswered = (): EverstepError => outOfReach("it does not answer");

export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** From the moment a store is asked to close it takes no more commits; a second close is the first one. */
export class Lifetime {
  readonly #ending = new AbortController();
  #closing: Promise<void> | undefined;

  /** Aborts when the store begins to close. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  requireOpen(): void {
    if (this.#closing) throw closed();
  }

  close(work: () => Promise<void>): Promise<void> {
    this.#closing ??= (async () => {
      this.#ending.abort();
      await work();
    })();
    return this.#closing;
  }
}

/** After so many refusals of one commit whoever wants it written ends what it belongs to with the reason. */
export const MOST_REFUSALS = 3;

/**
 * Whether a commit failed because of what it holds or needs to read: trying it again is likely to fail again. A store that is
 * full, locked or out of reach takes the same commit later. Some reasons concern the whole store all the same, so whoever gives
 * a commit up tries it once more each time before it writes the end instead: a store that is well again takes the commit.
 */
export const isRefusal = (error: unknown): boolean =>
  !(error instanceof EverstepError) || error.code === "store_refused" || error.code === "store_corrupt";
