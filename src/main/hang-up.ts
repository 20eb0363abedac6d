import { isatty } from "node:tty";

/** Tells a SIGHUP that somebody sent from the one that a terminal sends as it closes. */
export class HangUp {
  readonly #terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));

  /** Whether a terminal that was there at the start is gone. */
  isReal(): boolean {
    return this.#terminals.some((descriptor) => !isatty(descriptor));
  }
}
