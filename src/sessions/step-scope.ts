import { AsyncLocalStorage } from "node:async_hooks";

/** The step on whose behalf code runs. */
export type StepScope = {
  session_id: string;
  iteration: number;
  /** Ends the step as failed; answers false where it is over already. */
  fail(error: unknown): boolean;
};

const scope = new AsyncLocalStorage<StepScope>();

/** Runs a step so that whatever it starts and leaves behind is known as its own. */
export const inStepScope = <Result>(step: StepScope, work: () => Result): Result => scope.run(step, work);

/** Runs what a step calls but does not answer for. */
export const outsideStepScope = <Result>(work: () => Result): Result => scope.exit(work);

/** The step that the running code belongs to, if any. */
export const currentStep = (): StepScope | undefined => scope.getStore();
