import type { Bench } from "./bench.ts";
import { measureArchive } from "./cluster/archive.ts";
import { measureControl } from "./cluster/control.ts";
import { measureFailover } from "./cluster/failover.ts";
import { measureGrowth } from "./cluster/growth.ts";
import { measureLists } from "./cluster/lists.ts";
import { measureSteps } from "./cluster/steps.ts";

export const clusterBench: Bench = {
  measures: "workers as processes of their own on one PostgreSQL",
  parts: {
    steps: {
      measures: "trivial steps a second with 100 sessions of 20 steps on 1, 2 and 4 workers",
      run: measureSteps,
    },
    control: {
      measures: "pause and resume of 50 sessions on two workers, asked for by a third process",
      run: measureControl,
    },
    failover: { measures: "how long sessions stand still when their worker is killed", run: measureFailover },
    lists: { measures: "first pages of the console's lists at 1,000 sessions and at 1,000,000", run: measureLists },
    archive: {
      measures:
        "page and commit at 20,000,000 steps of which 19 of 20 are archived beside 1,000,000, and the archive's size",
      run: measureArchive,
    },
    growth: { measures: "claim, commit and page at 1,000 steps and at 1,000,000", run: measureGrowth },
  },
};
