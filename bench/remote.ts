import type { Bench } from "./bench.ts";
import { measureRemoteSteps } from "./remote/steps.ts";

export const remoteBench: Bench = {
  measures: "what a step costs that a worker in Python runs, beside one in Everstep's own process",
  parts: {
    steps: { measures: "steps of one session, over loopback HTTP and over stdio", run: measureRemoteSteps },
  },
};
