import type { Bench } from "./bench.ts";
import { measureControl } from "./runtime/control.ts";
import { measureRecovery } from "./runtime/recovery.ts";
import { measureSteps } from "./runtime/steps.ts";
import { measureTimers } from "./runtime/timers.ts";
import { measureWaiting } from "./runtime/waiting.ts";

export const runtimeBench: Bench = {
  measures: "the whole runtime on the embedded store, from a request to the committed step",
  parts: {
    steps: { measures: "trivial steps a second with 100 sessions of 20 steps, and what one costs", run: measureSteps },
    control: { measures: "pause and resume of 50 sessions whose steps take 50 ms", run: measureControl },
    recovery: { measures: "50 sessions in a process that is killed, and in the one after it", run: measureRecovery },
    timers: { measures: "how late 1,000 sessions with timers go on", run: measureTimers },
    waiting: {
      measures: "10,000 sessions that wait, 100,000 with timers: memory, idle processor, start",
      run: measureWaiting,
    },
  },
};
