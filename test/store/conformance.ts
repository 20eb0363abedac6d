import { describe } from "node:test";
import { IS_LONG } from "../repetitions.ts";
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
import { volumes } from "./conformance/volumes.ts";
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
  volumes,
];

const NOT_MOVED = [hostile, summaries, waking, webhooks, volumes];
/** Archiving does not move their rows. */
const UNMOVED = [claimFollowing, ownership];

/** What every engine of the port `Store` must do. An engine's own test file opens a store and passes it in. */
export function storeConformance(name: string, open: OpenStore): void {
  describe(`the store ${name}`, { concurrency: 3 }, () => {
    for (const part of PARTS) part(open);
  });
}

/**
 * The suite while rows are being archived, without the parts that this cannot affect: hostile names are read from both places
 * when the store is reopened, mutable rows are not archived, and an archive job moves rows itself.
 */
export function archivingConformance(name: string, open: OpenStore): void {
  describe(`the store ${name}`, { concurrency: 3 }, () => {
    const left = IS_LONG ? NOT_MOVED : [...NOT_MOVED, ...UNMOVED];
    for (const part of PARTS) if (!left.includes(part)) part(open);
  });
}

/** The same with very many steps. Once per engine is enough. */
export function storeVolume(name: string, open: OpenStore): void {
  describe(`the store ${name}`, () => volume(open));
}
