import assert from "node:assert/strict";
import { test } from "node:test";
import { EverstepError } from "../../src/domain/errors.ts";
import type { Step } from "../../src/domain/step.ts";
import { mustAdvance, mustCreate } from "./fixtures.ts";
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

test("pages are the same before, during and after a compaction, which moves every row", async () => {
  await using folder = await scratchFolder();
  await using store = await openStore(folder.path, { compact_after_fragments: 1000 });
  let owned = await mustCreate(store);
  const { agent_id } = owned.session;
  const expected: Step[] = [];
  for (let round = 0; round < 5; round += 1) {
    for (let fragment = 0; fragment < 5; fragment += 1) {
      for (let step = 0; step < 3; step += 1) {
        const advanced = await mustAdvance(store, owned);
        owned = advanced.owned;
        expected.push(advanced.step);
      }
      await store.checkpoint();
    }
    const compacted = new AbortController();
    const compaction = store.compact().finally(() => compacted.abort());
    for (let page = 0; !compacted.signal.aborted || page < 20; page += 1) {
      const offset = (page * 7) % expected.length;
      const steps = await store.listSteps({ agent_id, limit: 10, offset });
      assert.deepEqual(steps, expected.slice(offset, offset + 10));
    }
    await compaction;
  }
});
