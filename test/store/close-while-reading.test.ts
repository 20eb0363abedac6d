import assert from "node:assert/strict";
import { test } from "node:test";
import { EverstepError } from "../../src/domain/errors.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { openStore, writeCommits } from "./store-folder.ts";

const READS = 60;

/** A thread that ends while LanceDB reads for it takes the process down, and this test with it. */
test("a store that closes while many read from it answers every read or says that it is closed", async () => {
  await using folder = await scratchFolder();
  await using store = await openStore(folder.path);
  await writeCommits(store, 600);
  await store.checkpoint();
  const [session] = await store.listSessions({ limit: 1, offset: 0 });
  assert.ok(session);
  const reads = Array.from({ length: READS }, (_, index) =>
    index % 2 === 0
      ? store.listSteps({ agent_id: session.agent_id, limit: 500, offset: 0 })
      : store.search({ q: "step", limit: 100 }),
  );
  const settled = Promise.allSettled(reads);
  await Promise.race(reads);
  await store.close();
  for (const read of await settled)
    if (read.status === "rejected")
      assert.ok(read.reason instanceof EverstepError && read.reason.code === "store_closed", String(read.reason));
});
