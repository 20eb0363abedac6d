/** A place among the running steps: asked for, granted, given back. */
export type Slot = {
  /** Resolves when it is this one's turn, or when it was cancelled. */
  granted: Promise<void>;
  readonly isGranted: boolean;
  /** Stops waiting. A slot that was granted already stays so until it is released. */
  cancel(): void;
  release(): void;
};

/** Caps how many steps run at once. Sessions beyond it wait their turn, first come first served. */
export class StepSlots {
  readonly #most: number;
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(most: number) {
    this.#most = most;
    this.#free = most;
  }

  get load(): { running_steps: number; waiting_steps: number; max_running_steps: number } {
    const max_running_steps = this.#most;
    return { running_steps: max_running_steps - this.#free, waiting_steps: this.#waiting.size, max_running_steps };
  }

  request(): Slot {
    const waiting = this.#waiting;
    const give = () => this.#give();
    let isGranted = false;
    let wake = () => {};
    const grant = () => {
      isGranted = true;
      wake();
    };
    if (this.#free > 0) {
      this.#free -= 1;
      isGranted = true;
    } else waiting.add(grant);
    return {
      granted: isGranted ? Promise.resolve() : new Promise((resolve) => (wake = resolve)),
      get isGranted() {
        return isGranted;
      },
      cancel() {
        if (waiting.delete(grant)) wake();
      },
      release() {
        waiting.delete(grant);
        if (isGranted) give();
        isGranted = false;
      },
    };
  }

  #give(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
