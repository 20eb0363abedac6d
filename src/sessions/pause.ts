/** A wait between two steps that news can end early. */
export class Pause {
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

  end(): void {
    this.#end?.();
  }
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;
