import { describe } from "node:test";
import { creation } from "./promises/creation.ts";
import { order } from "./promises/order.ts";
import { submission } from "./promises/submit.ts";
import type { MakeHome } from "./runtime-fixture.ts";

/** What the runtime promises, on any engine: hand it a way to make an empty home for a store. */
export function runtimePromises(name: string, makeHome: MakeHome): void {
  describe(`the runtime on ${name}`, () => {
    for (const promises of [submission, creation, order]) promises(makeHome);
  });
}
