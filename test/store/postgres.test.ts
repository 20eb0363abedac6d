import { Pool } from "../../src/store/postgres/connections.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { ListUpkeep, UPKEEP_TUNING } from "../../src/store/postgres/session-lists.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import type { OpenedStore } from "./conformance/opened-store.ts";
import { storeConformance, storeVolume } from "./conformance.ts";

async function open(): Promise<OpenedStore> {
  const { url, remove } = await postgresHome();
  let store = await openPostgresStore({ url });
  return {
    store,
    async reopen() {
      await store.close();
      // After this, reads use the index instead of rows.
      const pool = new Pool(url, 1);
      await new ListUpkeep(pool, UPKEEP_TUNING).run();
      await pool.close();
      store = await openPostgresStore({ url });
      return store;
    },
    async destroy() {
      await store.close();
      await remove();
    },
  };
}

await onPostgres(() => {
  storeVolume("postgres", open);
  storeConformance("postgres", open);
});
