import { z } from "zod";
import type { FrameIn, FrameOut } from "../../src/domain/step-frame.ts";
import type { Moniker, MonikerKind, StepContext } from "../../src/monikers/moniker.ts";
import { PATIENCE_MS, within } from "../within.ts";

/** A running step that ends when the test says so. It ignores its signal. */
export type HeldStep = {
  frame: FrameIn;
  context: StepContext;
  /** Defaults for omitted fields: the next number, the old state, not done. */
  finish(out?: Partial<FrameOut>): void;
  fail(error: unknown): void;
};

/**
 * Monikers whose steps a test controls: `held` is continuous, `held_finite` and `held_reactive` are as named. A step is
 * available as soon as it has started, so that a test can await it instead of sleeping.
 */
export class HeldSteps {
  readonly monikers: Moniker[] = [
    this.#moniker("held", "continuous"),
    this.#moniker("held_finite", "finite"),
    this.#moniker("held_reactive", "reactive"),
  ];
  readonly #started = new Map<string, HeldStep[]>();
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Map<string, () => void>();

  /** The session's next step that was not returned before. */
  async next(session_id: string): Promise<HeldStep> {
    const index = this.#taken.get(session_id) ?? 0;
    this.#taken.set(session_id, index + 1);
    for (;;) {
      const step = this.#started.get(session_id)?.[index];
      if (step) return step;
      const started = new Promise<void>((resolve) => this.#waiting.set(session_id, resolve));
      await within(PATIENCE_MS, started, () => `no step ${index} of ${session_id} started`);
    }
  }

  /** How many steps of the session have started so far, including reruns. */
  started(session_id: string): number {
    return this.#started.get(session_id)?.length ?? 0;
  }

  #moniker(name: string, kind: MonikerKind): Moniker {
    return {
      name,
      kind,
      description: "Waits for a test to say what its step returns.",
      params: z.looseObject({}),
      step: (frame, context) =>
        new Promise<FrameOut>((resolve, reject) => {
          const { step, state } = frame;
          const next_step = String(context.ids.iteration + 1);
          const steps = this.#started.get(context.ids.session_id) ?? [];
          this.#started.set(context.ids.session_id, steps);
          steps.push({
            frame,
            context,
            finish: (out) => resolve({ step, next_step, state, done: false, ...out }),
            fail: reject,
          });
          this.#waiting.get(context.ids.session_id)?.();
        }),
    };
  }
}
