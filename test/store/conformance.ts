import { describe } from "node:test";
import { actions } from "./conformance/actions.ts";
import { claimFollowing } from "./conformance/claim-following.ts";
import { commits } from "./conformance/commit.ts";
import { concurrency } from "./conformance/concurrency.ts";
import { following } from "./conformance/follow.ts";
import { history } from "./conformance/history.ts";
import { hostile } from "./conformance/hostile.ts";
import type { OpenStore } from "./conformance/opened-store.ts";
import { ownership } from "./conformance/ownership.ts";
import { reads } from "./conformance/reads.ts";
import { search } from "./conformance/search.ts";
import { states } from "./conformance/states.ts";
import { steps } from "./conformance/steps.ts";
import { summaries } from "./conformance/summaries.ts";
import { volume } from "./conformance/volume.ts";
import { waking } from "./conformance/waking.ts";
import { webhooks } from "./conformance/webhooks.ts";

const PARTS = [
  commits,
  history,
  states,
  ownership,
  actions,
  claimFollowing,
  reads,
  steps,
  search,
  following,
  hostile,
  concurrency,
  summaries,
  waking,
  webhooks,
];

const NOT_MOVED = [hostile, summaries, waking, webhooks];

/** What every engine of the port `Store` must do. An engine's own test file opens a store and hands it over. */
export function storeConformance(name: string, open: OpenStore): void {
  describe(`the store ${name}`, { concurrency: 3 }, () => {
    for (const part of PARTS) part(open);
  });
}

/** What rows do that are moved meanwhile. Hostile names are read from both places where the store is reopened; what may still change is not moved. */
export function archivingConformance(name: string, open: OpenStore): void {
  describe(`the store ${name}`, { concurrency: 3 }, () => {
    for (const part of PARTS) if (!NOT_MOVED.includes(part)) part(open);
  });
}

/** The same at very many steps. Once per engine is enough. */
export function storeVolume(name: string, open: OpenStore): void {
  describe(`the store ${name}`, () => volume(open));
}
