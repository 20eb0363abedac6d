import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEmbeddedStore, type Tuning } from "../../src/store/embedded/embedded-store.ts";
import type { OpenedStore } from "./conformance/opened-store.ts";

/** A store in its own folder. */
export async function openLanceHome(tuning: Partial<Tuning> = {}): Promise<OpenedStore> {
  const folder = await mkdtemp(join(tmpdir(), "everstep-"));
  let store = await openEmbeddedStore({ folder, tuning });
  return {
    store,
    async reopen() {
      await store.close();
      store = await openEmbeddedStore({ folder, tuning });
      return store;
    },
    async destroy() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}
