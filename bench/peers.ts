import type { Bench } from "./bench.ts";
import { measureSteps } from "./peers/steps.ts";

export const peersBench: Bench = {
  measures: "Everstep beside LangGraph.js, DBOS Transact and Restate (npm ci --prefix bench/peers brings them along)",
  parts: {
    steps: { measures: "trivial durable steps: how many a second, one alone, and what they cost", run: measureSteps },
  },
};
