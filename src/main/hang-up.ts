import { isatty } from "node:tty";

/** Distinguishes a SIGHUP that somebody sent from one that a closing terminal sends. */
export class HangUp {
  readonly #terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));

  /** Whether a terminal that existed at the start is gone. */
  isReal(): boolean {
    return this.#terminals.some((descriptor) => !isatty(descriptor));
  }
}
