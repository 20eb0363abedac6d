import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import type { Store } from "../../../src/store/store.ts";

export type OpenedStore = {
  store: Store;
  /** Closes the store and opens the same data again. */
  reopen: () => Promise<Store>;
  /** Closes whatever is open and deletes the data. */
  destroy: () => Promise<void>;
};

export type OpenStore = () => Promise<OpenedStore>;

/** A test that waits longer than this, in milliseconds, waits for something that never comes. */
const TIMEOUT = 120_000;

/** Parts of the suite run side by side, each with a store of its own; the tests of a part do not. */
export const IN_ORDER = { concurrency: 1 };

export type FreshTest = (name: string, body: (opened: OpenedStore, test: TestContext) => Promise<void>) => void;

/** Tests that each get a store of their own, which is gone afterwards whatever happens. */
export function testOnFreshStore(open: OpenStore): FreshTest {
  return (name, body) => {
    test(name, { timeout: TIMEOUT }, async (t) => {
      const opened = await open();
      // Not `finally`: a body that waits for something that never comes does not get there.
      t.after(() => opened.destroy());
      await body(opened, t);
    });
  };
}

/** The same where one store will do for all of them: what the others wrote is in nobody's way, and nobody closes it. */
export function testOnSharedStore(open: OpenStore): FreshTest {
  let opened: OpenedStore;
  before(async () => {
    opened = await open();
  });
  after(() => opened.destroy());
  return (name, body) => {
    test(name, { timeout: TIMEOUT }, (t) => body(opened, t));
  };
}

/** What must be true of the store from now on. */
export type Claim = (store: Store) => Promise<void>;
export type ClaimTest = (name: string, body: (store: Store, test: TestContext) => Promise<Claim>) => void;

/** Tests that share a store. What each one claims is checked at once, and again after the store was reopened at the end. */
export function describeClaims(subject: string, open: OpenStore, define: (claim: ClaimTest) => void): void {
  describe(subject, IN_ORDER, () => {
    let opened: OpenedStore;
    const claims: { name: string; holds: Claim }[] = [];
    before(async () => {
      opened = await open();
    });
    after(() => opened.destroy());

    define((name, body) => {
      test(name, { timeout: TIMEOUT }, async (t) => {
        const holds = await body(opened.store, t);
        await holds(opened.store);
        claims.push({ name, holds });
      });
    });

    test("and all of this is still true after reopening", async (t) => {
      const store = await opened.reopen();
      assert.notEqual(claims.length, 0);
      for (const { name, holds } of claims) await t.test(name, () => holds(store));
    });
  });
}
