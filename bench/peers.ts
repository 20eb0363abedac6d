import type { Bench } from "./bench.ts";
import { measureKills } from "./peers/agent/kills.ts";
import { measureAgent } from "./peers/agent/overheads.ts";
import { measureControl } from "./peers/control.ts";
import { measureCrash } from "./peers/crash.ts";
import { measureGrowth } from "./peers/growth.ts";
import { measureSteps } from "./peers/steps.ts";

export const peersBench: Bench = {
  measures:
    "Everstep beside LangGraph.js, DBOS Transact, Restate, eve and the AI SDK (npm ci --prefix bench/peers brings them along)",
  parts: {
    steps: { measures: "trivial durable steps: how many a second, one alone, and what they cost", run: measureSteps },
    control: { measures: "50 sessions whose steps take 50 ms, paused and resumed", run: measureControl },
    crash: { measures: "50 sessions whose steps take 20 ms, killed and started again", run: measureCrash },
    growth: { measures: "bytes kept for a state that grows by 1 KB a step", run: measureGrowth },
    agent: {
      measures: "agents of 10 model calls and 20 tool calls: what a call costs, and the first text",
      run: measureAgent,
    },
    kills: {
      measures: "the same agents, killed 100 times (quick: 5): tool calls that were made again",
      run: measureKills,
    },
  },
};
