import { EverstepError } from "../domain/errors.ts";

/** The errors of both engines. The engines translate their libraries' codes into these. */
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

/** A store takes no more commits once it is asked to close; a second close returns the first one's promise. */
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

/** After this many refusals of a commit, the caller ends what it belongs to and gives the refusal as the reason. */
export const MOST_REFUSALS = 3;

/**
 * Whether a commit failed because of its content or of what it needs to read, so that a retry is likely to fail too. A store that is
 * full, locked or out of reach takes the same commit later. Some of these errors concern the whole store all the same, so a caller
 * tries the commit once more each time before it writes the end instead.
 */
export const isRefusal = (error: unknown): boolean =>
  !(error instanceof EverstepError) || error.code === "store_refused" || error.code === "store_corrupt";
