import type { TestContext } from "node:test";
import type { Store } from "../../../src/store/store.ts";

/** A store of its own for one test. */
export type OpenedStore = {
  store: Store;
  /** Closes the store and opens the same data again. */
  reopen(): Promise<Store>;
  /** Closes whatever is open and deletes the data. */
  destroy(): Promise<void>;
};

export type OpenStore = () => Promise<OpenedStore>;

/** The body of a test that gets a fresh store, which is gone afterwards whatever happens. */
export function withStore(
  open: OpenStore,
  body: (opened: OpenedStore, test: TestContext) => Promise<void>,
): (test: TestContext) => Promise<void> {
  return async (test) => {
    const opened = await open();
    try {
      await body(opened, test);
    } finally {
      await opened.destroy();
    }
  };
}
