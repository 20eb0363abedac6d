/** A place among the running steps: requested, granted, released. */
export type Slot = {
  /** Resolves when it is granted or cancelled. */
  granted: Promise<void>;
  readonly isGranted: boolean;
  /** Stops waiting. A granted slot stays granted until it is released. */
  cancel(): void;
  release(): void;
};

/** Caps how many steps run at once. Others wait, first come first served. */
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

  /** Whether a slot would be granted at once. */
  get hasFree(): boolean {
    return this.#free > 0;
  }

  request(): Slot {
    const waiting = this.#waiting;
    const passOn = () => this.#passOn();
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
        if (isGranted) passOn();
        isGranted = false;
      },
    };
  }

  #passOn(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
