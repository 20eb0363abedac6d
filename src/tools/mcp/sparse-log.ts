/** The most lines logged per time window; further ones are only counted. */
const MOST_LINES = 100;
const WINDOW_MS = 10_000;

/** Passes on lines; of a flood only the first in each window, and how many were dropped. */
export class SparseLog {
  readonly #write: (line: string, left_out: number) => void;
  #windowStart = 0;
  #lines = 0;
  #leftOut = 0;

  constructor(write: (line: string, left_out: number) => void) {
    this.#write = write;
  }

  write(line: string): void {
    const now = Date.now();
    if (now - this.#windowStart >= WINDOW_MS) {
      this.#windowStart = now;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines > MOST_LINES) {
      this.#leftOut += 1;
      return;
    }
    this.#write(line, this.#leftOut);
    this.#leftOut = 0;
  }
}
