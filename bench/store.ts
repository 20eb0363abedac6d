import type { Bench } from "./bench.ts";
import { measureBackup } from "./store/backup.ts";
import { measureCommits } from "./store/commits.ts";
import { measureGrowth } from "./store/growth.ts";
import { measureLists } from "./store/lists.ts";
import { measureMemory } from "./store/memory.ts";
import { measurePages } from "./store/pages.ts";
import { measureReopen } from "./store/reopen.ts";
import { measureUpgrade } from "./store/upgrade.ts";

export const storeBench: Bench = {
  measures: "the embedded store, durable commits on a real disk",
  parts: {
    commits: {
      measures: "commits a second, latency and the event loop with 1, 10, 100 and 1,000 sessions",
      run: measureCommits,
    },
    pages: { measures: "a page of 100 steps in a store of 1,000, 100,000 and 1,000,000", run: measurePages },
    lists: { measures: "first pages of the lists of 1,000 and 100,000 sessions", run: measureLists },
    growth: { measures: "bytes written and kept for a state that grows by 1 KB a step", run: measureGrowth },
    memory: { measures: "memory after 100,000 commits of 100 sessions", run: measureMemory },
    backup: { measures: "commits while a store of 1 GB is backed up", run: measureBackup },
    upgrade: { measures: "a folder of 1,000,000 steps opened with one more column", run: measureUpgrade },
    reopen: { measures: "time until 10,000 live sessions are back in a fresh process", run: measureReopen },
  },
};
