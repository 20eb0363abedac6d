import { setTimeout as wait } from "node:timers/promises";
import type { Step } from "../../src/domain/step.ts";
import type { Follower } from "./follower.ts";

const LOOK_EVERY_MS = 500;
/** Milliseconds without a row after which missing ones count as lost. */
const STALLED_AFTER_MS = 10_000;

/** What each socket received. */
export class Deliveries {
  /** From a step's `created_at` to its arrival, in milliseconds; both by the same clock. */
  readonly latencies: number[] = [];
  /** Per session. */
  readonly steps: number;
  readonly #arrivals: Uint8Array[] = [];
  #outOfOrder = 0;

  constructor(steps: number) {
    this.steps = steps;
  }

  listen({ socket }: Follower, session_id: string): void {
    const arrivals = new Uint8Array(this.steps);
    this.#arrivals.push(arrivals);
    let last = -1;
    socket.on("agent_step", (step: Step) => {
      this.latencies.push(Date.now() - Date.parse(step.created_at));
      if (step.session_id !== session_id || step.iteration >= this.steps)
        throw new Error(`a socket that follows ${session_id} got step ${step.iteration} of ${step.session_id}`);
      if (step.iteration !== last + 1) this.#outOfOrder += 1;
      last = step.iteration;
      arrivals[step.iteration] = (arrivals[step.iteration] ?? 0) + 1;
    });
  }

  /** Resolves when every row has reached every socket that follows it, or when no more arrive. Calls `meanwhile` now and then. */
  async complete(meanwhile: () => Promise<void>): Promise<void> {
    let before = -1;
    let since = performance.now();
    while (this.faults().lost > 0 && performance.now() - since < STALLED_AFTER_MS) {
      if (this.latencies.length !== before) since = performance.now();
      before = this.latencies.length;
      await wait(LOOK_EVERY_MS);
      await meanwhile();
    }
  }

  faults(): { lost: number; twice: number; out_of_order: number } {
    let lost = 0;
    let twice = 0;
    for (const arrivals of this.#arrivals)
      for (const count of arrivals) {
        if (count === 0) lost += 1;
        else twice += count - 1;
      }
    return { lost, twice, out_of_order: this.#outOfOrder };
  }
}
