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

/** A test that takes longer than this, in milliseconds, is stuck. */
const TIMEOUT = 120_000;

/** Parts of the suite run concurrently, each with its own store; the tests of a part do not. */
export const IN_ORDER = { concurrency: 1 };

export type FreshTest = (name: string, body: (opened: OpenedStore, test: TestContext) => Promise<void>) => void;

/** Tests that each get their own store, which is destroyed afterwards whatever happens. */
export function testOnFreshStore(open: OpenStore): FreshTest {
  return (name, body) => {
    test(name, { timeout: TIMEOUT }, async (t) => {
      const opened = await open();
      // Not `finally`: a body that waits forever does not get there.
      t.after(() => opened.destroy());
      await body(opened, t);
    });
  };
}

/** The same with one store for all of them, for tests that other rows do not disturb and that do not close it. */
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

/** Tests that share a store. Each claim is checked at once, and again after the store is reopened at the end. */
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
