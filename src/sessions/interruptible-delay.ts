const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A delay that can be ended early. */
export class InterruptibleDelay {
  #end: (() => void) | undefined;

  async wait(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS));
      this.#end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#end = undefined;
  }

  interrupt(): void {
    this.#end?.();
  }
}
