import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLanceStore, type Tuning } from "../../src/store/lancedb/lancedb-store.ts";
import type { OpenedStore } from "./conformance/opened-store.ts";
import { storeConformance, storeVolume } from "./conformance.ts";

async function openIn(tuning: Partial<Tuning>): Promise<OpenedStore> {
  const folder = await mkdtemp(join(tmpdir(), "everstep-"));
  let store = await openLanceStore({ folder, tuning });
  return {
    store,
    async reopen() {
      await store.close();
      store = await openLanceStore({ folder, tuning });
      return store;
    },
    async destroy() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

storeVolume("lancedb", () => openIn({}));
storeConformance("lancedb", () => openIn({}));
storeConformance("lancedb that moves rows constantly", () =>
  openIn({ move_after_rows: 1, move_after_ms: 1, compact_after_fragments: 2 }),
);
