import { AsyncLocalStorage } from "node:async_hooks";

/** The step that code runs for. */
export type StepScope = {
  session_id: string;
  iteration: number;
  moniker: string;
  /** Fails the step; returns false if it is already over. */
  fail(error: unknown): boolean;
};

const scope = new AsyncLocalStorage<StepScope>();

const MOST_NAMED = 20;
/**
 * Slots are reused. Not a Set: with steps coming and going it would rebuild its table constantly, and the tables left behind
 * keep their entries from being collected early.
 */
const running: (StepScope | undefined)[] = [];
const freePlaces: number[] = [];

/** Runs a step so that whatever it starts and leaves behind is attributed to it. */
export const inStepScope = <Result>(step: StepScope, work: () => Result): Result => scope.run(step, work);

/** Called when a step begins; the returned function is called at its end. */
export function countRunning(step: StepScope): () => void {
  const place = freePlaces.pop() ?? running.length;
  running[place] = step;
  return () => {
    running[place] = undefined;
    freePlaces.push(place);
  };
}

/** Some of the running steps, for a log. */
export const runningSteps = (): Pick<StepScope, "session_id" | "iteration" | "moniker">[] =>
  running
    .filter((step) => step !== undefined)
    .slice(0, MOST_NAMED)
    .map(({ session_id, iteration, moniker }) => ({ session_id, iteration, moniker }));

/** Runs code that a step triggers but is not responsible for. */
export const outsideStepScope = <Result>(work: () => Result): Result => scope.exit(work);

/** The step that the current code belongs to, if any. */
export const currentStep = (): StepScope | undefined => scope.getStore();
