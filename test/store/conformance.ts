import { describe } from "node:test";
import { actions } from "./conformance/actions.ts";
import { commits } from "./conformance/commit.ts";
import { following } from "./conformance/follow.ts";
import { history } from "./conformance/history.ts";
import type { OpenStore } from "./conformance/opened-store.ts";
import { ownership } from "./conformance/ownership.ts";
import { reads } from "./conformance/reads.ts";
import { search } from "./conformance/search.ts";
import { states } from "./conformance/states.ts";
import { steps } from "./conformance/steps.ts";

export function storeConformance(name: string, open: OpenStore): void {
  describe(`the store ${name}`, () => {
    for (const part of [commits, history, states, reads, steps, ownership, actions, following, search]) part(open);
  });
}
export function storeVolume(name: string, open: OpenStore): void {}
