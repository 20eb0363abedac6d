import { AsyncLocalStorage } from "node:async_hooks";

/** The step on whose behalf code runs. */
export type StepScope = {
  session_id: string;
  iteration: number;
  moniker: string;
  /** Ends the step as failed; answers false where it is over already. */
  fail(error: unknown): boolean;
};

const scope = new AsyncLocalStorage<StepScope>();

const MOST_NAMED = 20;
/**
 * Each in the place that its predecessor left. Not a set: with steps coming and going a set makes its table anew all the time, and
 * tables that it left behind keep what they held from being freed early.
 */
const running: (StepScope | undefined)[] = [];
const freePlaces: number[] = [];

/** Runs a step so that whatever it starts and leaves behind is known as its own. */
export const inStepScope = <Result>(step: StepScope, work: () => Result): Result => scope.run(step, work);

/** A step begins to run; what is returned is called at its end. */
export function countRunning(step: StepScope): () => void {
  const place = freePlaces.pop() ?? running.length;
  running[place] = step;
  return () => {
    running[place] = undefined;
    freePlaces.push(place);
  };
}

/** Some of the steps that run now, for a log. */
export const runningSteps = (): Pick<StepScope, "session_id" | "iteration" | "moniker">[] =>
  running
    .filter((step) => step !== undefined)
    .slice(0, MOST_NAMED)
    .map(({ session_id, iteration, moniker }) => ({ session_id, iteration, moniker }));

/** Runs what a step calls but does not answer for. */
export const outsideStepScope = <Result>(work: () => Result): Result => scope.exit(work);

/** The step that the running code belongs to, if any. */
export const currentStep = (): StepScope | undefined => scope.getStore();
