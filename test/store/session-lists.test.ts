import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { aSession, mustCommit } from "./fixtures.ts";
import { scratchFolder } from "./scratch-folder.ts";

const PAGE = { limit: 10, offset: 0 };

async function create(store: EmbeddedStore, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 500) {
    const sessions = Array.from({ length: Math.min(500, left) }, () => aSession());
    await mustCommit(store, { sessions: sessions.map((session) => ({ kind: "create", session, worker: null })) });
  }
}

test("what an earlier process left of its lists is not read, and nothing is left at the end", async () => {
  await using scratch = await scratchFolder();
  const file = join(scratch.path, "lists.tmp");
  const first = await openEmbeddedStore({ folder: scratch.path });
  await create(first, 3);
  assert.equal((await first.summarizeSessions(PAGE)).total, 3);
  assert.ok(existsSync(file));
  await first.close();
  assert.ok(!existsSync(file));
  await writeFile(file, "half of a database");
  const second = await openEmbeddedStore({ folder: scratch.path });
  assert.equal((await second.summarizeSessions(PAGE)).total, 3);
  await second.close();
});

test("sessions that changed by the thousand while nobody asked are in the next list", async () => {
  await using scratch = await scratchFolder();
  const store = await openEmbeddedStore({ folder: scratch.path });
  assert.equal((await store.summarizeSessions(PAGE)).total, 0);
  await create(store, 6000);
  const { total, counts, sessions } = await store.summarizeSessions(PAGE);
  assert.deepEqual([total, counts.running, sessions.length], [6000, 6000, 10]);
  assert.equal((await store.counts()).sessions.running, 6000);
  await store.close();
});

test("a search that fits very many says that it did not count them all", async () => {
  await using scratch = await scratchFolder();
  const store = await openEmbeddedStore({ folder: scratch.path });
  await create(store, 4500);
  const { exact, total, sessions } = await store.summarizeSessions({ ...PAGE, q: "count" });
  assert.deepEqual([exact, total, sessions.length], [false, 4000, 10]);
  assert.equal((await store.summarizeSessions({ ...PAGE, q: "nowhere" })).exact, true);
  await store.close();
});
