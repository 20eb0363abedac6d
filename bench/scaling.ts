import type { Bench } from "./bench.ts";
import { measureCosts } from "./scaling/costs.ts";
import { measureSimulation } from "./scaling/simulation.ts";

export const scalingBench: Bench = {
  measures: "what one PostgreSQL carries, and a simulation of many more workers with what things cost here",
  parts: {
    costs: {
      measures: "processor time, log and connections that steps, workers and notifications cost",
      run: measureCosts,
    },
    simulation: { measures: "up to 1,000 workers and 10 million sessions, simulated", run: measureSimulation },
  },
};
