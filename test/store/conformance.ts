import { describe } from "node:test";
import { commits } from "./conformance/commit.ts";
import { history } from "./conformance/history.ts";
import { states } from "./conformance/states.ts";
import type { OpenStore } from "./conformance/opened-store.ts";

export function storeConformance(name: string, open: OpenStore): void {
  describe(`the store ${name}`, { timeout: 120_000 }, () => {
    for (const part of [commits, history, states]) part(open);
  });
}
export function storeVolume(name: string, open: OpenStore): void {}
