import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { administer } from "../postgres-process.ts";
import { onPostgres, postgresServer } from "../postgres-server.ts";
import { mustAdvance, mustCreate } from "./fixtures.ts";
import { hasPgbouncer, startPgbouncer } from "./pgbouncer.ts";

/** Settings that Everstep's connections use and PgBouncer does not know. */
const SETTINGS = [
  "lock_timeout",
  "synchronous_commit",
  "plan_cache_mode",
  "enable_seqscan",
  "enable_hashjoin",
  "enable_mergejoin",
  "jit",
];

const REFUSED = [
  { pool_mode: "transaction", pool_size: 20, ignore: SETTINGS },
  { pool_mode: "transaction", pool_size: 1, ignore: SETTINGS },
  { pool_mode: "statement", pool_size: 20, ignore: SETTINGS },
  { pool_mode: "transaction", pool_size: 20, ignore: [] },
] as const;

await onPostgres(() => {
  describe("PgBouncer before the database", () => {
    for (const { pool_mode, pool_size, ignore } of REFUSED)
      test(`in ${pool_mode} mode with ${pool_size} connections, ${ignore.length} settings ignored: is refused`, async (t) => {
        if (!hasPgbouncer(t)) return;
        const { url } = await postgresServer();
        await using pooler = await startPgbouncer(url, { pool_mode, pool_size, ignore: [...ignore] });
        await assert.rejects(openPostgresStore({ url: pooler.url }), { name: "EverstepError", code: "store_pooled" });
      });

    test("in session mode: works; if it refuses our settings, the error says so", async (t) => {
      if (!hasPgbouncer(t)) return;
      const { url } = await postgresServer();
      const database = `pooled_${process.pid}`;
      await administer(url, `create database ${database}`);
      const address = new URL(url);
      address.pathname = `/${database}`;
      {
        await using strict = await startPgbouncer(address.href, { pool_mode: "session", pool_size: 20, ignore: [] });
        await assert.rejects(openPostgresStore({ url: strict.url }), { name: "EverstepError", code: "store_pooled" });
        await using pooler = await startPgbouncer(address.href, {
          pool_mode: "session",
          pool_size: 20,
          ignore: SETTINGS,
        });
        const store = await openPostgresStore({ url: pooler.url });
        await mustAdvance(store, await mustCreate(store));
        await store.close();
      }
      await administer(url, `drop database ${database} with (force)`);
    });
  });
});
