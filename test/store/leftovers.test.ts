import assert from "node:assert/strict";
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { mock, test } from "node:test";
import { Archive } from "../../src/store/embedded/archive.ts";
import { removeLeftovers } from "../../src/store/embedded/data-folder.ts";
import { StorageThread } from "../../src/store/embedded/storage-thread.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { fillFolder, openStore, verifyFolder, writeAndKill } from "./store-folder.ts";

const UNUSED_INDEX = "00000000-0000-4000-8000-000000000000";

test("files that a killed process left in a table are removed at the next start, and nothing else is", async () => {
  await using scratch = await scratchFolder();
  const folder = scratch.path;
  const acknowledged = await fillFolder(folder);
  await writeAndKill(folder, acknowledged, 30);
  const table = join(folder, "agent_steps.lance");
  const [used] = (await readdir(join(table, "data"))) as [string];
  await cp(join(table, "data", used), join(table, "data", "of-a-killed-write.lance"));
  await mkdir(join(table, "_indices", UNUSED_INDEX));
  await writeFile(join(table, "_indices", UNUSED_INDEX, "part.lance"), "cut off");
  const indices = (await readdir(join(table, "_indices"))).filter((name) => name !== UNUSED_INDEX);
  await using store = await openStore(folder);
  assert.ok(!(await readdir(join(table, "data"))).includes("of-a-killed-write.lance"));
  assert.ok((await readdir(join(table, "data"))).includes(used));
  assert.deepEqual((await readdir(join(table, "_indices"))).sort(), indices.sort());
  await store.compact();
  await store.close();
  await verifyFolder(folder, acknowledged);
});

test("after a kill only the recorded version of a table stays, however many older ones there were", async () => {
  await using scratch = await scratchFolder();
  const folder = scratch.path;
  const acknowledged = await fillFolder(folder);
  for (let round = 0; round < 3; round += 1) {
    await writeAndKill(folder, acknowledged, 10);
    await using store = await openStore(folder);
    await store.checkpoint();
  }
  await writeAndKill(folder, acknowledged, 10);
  await using store = await openStore(folder);
  const versions = await readdir(join(folder, "agent_steps.lance", "_versions"));
  assert.equal(versions.filter((name) => name.endsWith(".manifest")).length, 1);
  await store.close();
  await verifyFolder(folder, acknowledged);
});

test("a manifest that names fewer files than the table has is not understood, and nothing is removed", async () => {
  await using scratch = await scratchFolder();
  const table = join(scratch.path, "table.lance");
  for (const folder of ["data", "_versions", "_indices"]) await mkdir(join(table, folder), { recursive: true });
  await writeFile(join(table, "data", "a.lance"), "rows");
  await writeFile(join(table, "_versions", "1.manifest"), "older");
  await writeFile(join(table, "_versions", "2.manifest"), "of a later format");
  await removeLeftovers(table, "2.manifest", { fragments: 1, indexes: 0 });
  assert.deepEqual(await readdir(join(table, "data")), ["a.lance"]);
  assert.deepEqual((await readdir(join(table, "_versions"))).sort(), ["1.manifest", "2.manifest"]);
  assert.equal(await readFile(join(table, "data", "a.lance"), "utf8"), "rows");
});

test("rows that were moved are recorded before a compaction, which may be killed over and over", async () => {
  await using scratch = await scratchFolder();
  const [folder, copy] = [join(scratch.path, "store"), join(scratch.path, "copy")];
  const acknowledged = await fillFolder(folder);
  await writeAndKill(folder, acknowledged, 40);
  const compaction = Promise.withResolvers<void>();
  const begun = new Promise<void>((resolve) => {
    mock.method(Archive.prototype, "compact", () => {
      resolve();
      return compaction.promise;
    });
  });
  const storage = await StorageThread.open(folder, {}, () => {});
  try {
    assert.ok(storage.stats().backlog > 0);
    const checkpoint = storage.checkpoint(true);
    await begun;
    await cp(folder, copy, { recursive: true });
    compaction.resolve();
    await checkpoint;
  } finally {
    mock.restoreAll();
    await storage.close();
  }
  await using store = await openStore(copy);
  assert.equal((await store.stats()).backlog, 0);
  await store.close();
  await verifyFolder(copy, acknowledged);
});
