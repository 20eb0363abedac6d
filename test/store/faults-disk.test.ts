import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { aSession, mustCreate } from "./fixtures.ts";
import { fillUp, makeSpace } from "./full-disk.ts";
import { writeHistory } from "./lane-writer.ts";
import { abort, type Mounted, makeDisk, mayMount, mountDisk, mountMemory, remount } from "./mounts.ts";
import { scratchFolder } from "./scratch-folder.ts";
import {
  assertCoded,
  fillFolder,
  LANES,
  openStore,
  refusesToOpen,
  rejectsWith,
  verifyFolder,
  writeCommits,
} from "./store-folder.ts";
import { type Acknowledged, acknowledge, verifyHistory } from "./verify-history.ts";

const MEGABYTE = 1 << 20;
const KILOBYTE = 1 << 10;

describe("a disk that cannot be written", () => {
  test("is refused with a coded error, whether the folder is there or not, and nothing is lost", async (t) => {
    if (!mayMount(t)) return;
    await using scratch = await scratchFolder();
    const image = join(scratch.path, "disk.img");
    await makeDisk(image, 64 * MEGABYTE);
    await using disk = await mountDisk(image, join(scratch.path, "disk"));
    const folder = join(disk.folder, "data");
    const acknowledged = await fillFolder(folder);
    await remount(disk, "ro");
    await refusesToOpen(folder, "store_read_only");
    await refusesToOpen(join(disk.folder, "absent"), "store_read_only");
    await remount(disk, "rw");
    await verifyFolder(folder, acknowledged);
  });

  test("fails under an open store: commits end in a coded error, and what was acknowledged is there after a restart", async (t) => {
    if (!mayMount(t)) return;
    await using scratch = await scratchFolder();
    const image = join(scratch.path, "disk.img");
    await makeDisk(image, 64 * MEGABYTE);
    const place = join(scratch.path, "disk");
    const acknowledged: Acknowledged = new Map();
    {
      await using disk = await mountDisk(image, place);
      const store = await openEmbeddedStore({ folder: join(disk.folder, "data") });
      await writeCommits(store, 40, acknowledged);
      await abort(disk);
      await rejectsWith(mustCreate(store, aSession()), "store_unavailable", "store_read_only");
      await rejectsWith(store.checkpoint(), "store_unavailable", "store_read_only");
      await verifyHistory(store, { lanes: LANES, acknowledged });
      await store.close().catch((error: unknown) => assertCoded(error, ["store_unavailable", "store_read_only"]));
    }
    await using disk = await mountDisk(image, place);
    await verifyFolder(join(disk.folder, "data"), acknowledged);
  });
});

describe("a disk that is full", () => {
  test("refuses commits with store_full, takes the same ones once there is space, and keeps what was acknowledged", async (t) => {
    await using disk = await smallDisk(t, 24 * MEGABYTE);
    if (disk === null) return;
    const folder = join(disk.folder, "data");
    const acknowledged: Acknowledged = new Map();
    {
      await using store = await openStore(folder);
      for (const free of [0, 4 * KILOBYTE, 40 * KILOBYTE, 200 * KILOBYTE, MEGABYTE]) {
        await fillUp(disk, free);
        await writeUntilRefused(store, acknowledged, async () => {
          await verifyHistory(store, { lanes: LANES, acknowledged });
          await makeSpace(disk);
        });
        await verifyHistory(store, { lanes: LANES, acknowledged });
      }
    }
    await verifyFolder(folder, acknowledged);
  });

  test("while rows are moved into LanceDB: nothing is lost, and the move is made up for once there is space", async (t) => {
    await using disk = await smallDisk(t, 24 * MEGABYTE);
    if (disk === null) return;
    const folder = join(disk.folder, "data");
    const acknowledged: Acknowledged = new Map();
    const notices: string[] = [];
    let failed = 0;
    {
      await using store = await openStore(folder, {}, (text) => notices.push(text));
      for (const free of [0, 4, 12, 24, 40, 64, 96, 128, 192, 256].map((kilobytes) => kilobytes * KILOBYTE)) {
        await writeCommits(store, 60, acknowledged);
        await fillUp(disk, free);
        for (const work of ["checkpoint", "compact"] as const) {
          const isFull = await store[work]().then(
            () => false,
            (error: unknown) => {
              assertCoded(error, ["store_full"]);
              failed += 1;
              return true;
            },
          );
          assert.equal((await store.problems?.())?.length, isFull ? 1 : 0);
          if (isFull) assert.match(notices.at(-1) ?? "", /rows could not be moved into LanceDB.*store_full/);
        }
        await verifyHistory(store, { lanes: LANES, acknowledged });
        await makeSpace(disk);
        await store.checkpoint();
        assert.equal((await store.stats()).backlog, 0, `all is moved after ${free} bytes were free`);
        await verifyHistory(store, { lanes: LANES, acknowledged });
      }
    }
    assert.ok(failed > 2, `the disk was full for only ${failed} moves`);
    await verifyFolder(folder, acknowledged);
  });

  test("while the store moves rows by itself: commits go on once there is space, and all is consistent", async (t) => {
    await using disk = await smallDisk(t, 24 * MEGABYTE);
    if (disk === null) return;
    const folder = join(disk.folder, "data");
    const acknowledged: Acknowledged = new Map();
    {
      await using store = await openStore(folder, {
        move_after_rows: 20,
        move_after_ms: 10,
        compact_after_fragments: 3,
      });
      for (const free of [0, 64 * KILOBYTE, 512 * KILOBYTE]) {
        await fillUp(disk, free);
        // Archiving may free or need space at any moment, so any number of commits may be refused.
        await writeWhile(store, acknowledged, async () => await makeSpace(disk));
        await makeSpace(disk);
        await verifyHistory(store, { lanes: LANES, acknowledged });
      }
    }
    await verifyFolder(folder, acknowledged);
  });

  test("refuses to be opened with store_full, where the folder is there and where it is not, and opens once there is space", async (t) => {
    await using disk = await smallDisk(t, 12 * MEGABYTE);
    if (disk === null) return;
    const folder = join(disk.folder, "data");
    const acknowledged = await fillFolder(folder);
    await fillUp(disk, 0);
    await refusesToOpen(join(disk.folder, "absent"), "store_full");
    // An old folder may open without a write; it must then report the full disk at its first write.
    const opened = await openEmbeddedStore({ folder }).catch((error: unknown) => assertCoded(error, ["store_full"]));
    if (opened) {
      await rejectsWith(mustCreate(opened, aSession({ context: { large: "x".repeat(MEGABYTE) } })), "store_full");
      await opened.close();
    }
    await makeSpace(disk);
    await verifyFolder(folder, acknowledged);
    await verifyFolder(join(disk.folder, "absent"), new Map());
  });
});

type SmallDisk = Mounted | null;

async function smallDisk(t: TestContext, bytes: number): Promise<SmallDisk> {
  if (!mayMount(t)) return null;
  const scratch = await scratchFolder();
  const disk = await mountMemory(join(scratch.path, "disk"), bytes);
  return {
    folder: disk.folder,
    [Symbol.asyncDispose]: async () => {
      await disk[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** Writes until the disk is full for every lane, lets `recover` make space, and writes a while longer. */
async function writeUntilRefused(
  store: EmbeddedStore,
  acknowledged: Acknowledged,
  recover: () => Promise<void>,
): Promise<void> {
  const enough = new AbortController();
  const recovered = Promise.withResolvers<void>();
  let refused = 0;
  let more = Number.POSITIVE_INFINITY;
  await writeHistory(store, {
    lanes: LANES,
    pace_ms: 0,
    signal: enough.signal,
    acknowledge: (attempt) => {
      acknowledge(acknowledged, attempt);
      if (--more === 0) enough.abort();
    },
    recover: async (error) => {
      assertCoded(error, ["store_full"]);
      refused += 1;
      if (refused === LANES) {
        more = 50;
        await recover().then(recovered.resolve, recovered.reject);
      }
      await recovered.promise;
      assert.ok(refused <= LANES, "a commit is refused though there is space");
    },
  });
  assert.equal(refused, LANES, "every lane met the full disk once");
}

/** Writes 200 commits, retrying each that found the disk full. */
async function writeWhile(
  store: EmbeddedStore,
  acknowledged: Acknowledged,
  recover: () => Promise<void>,
): Promise<void> {
  const enough = new AbortController();
  let left = 200;
  await writeHistory(store, {
    lanes: LANES,
    pace_ms: 0,
    signal: enough.signal,
    acknowledge: (attempt) => {
      acknowledge(acknowledged, attempt);
      if (--left === 0) enough.abort();
    },
    recover: async (error) => {
      assertCoded(error, ["store_full"]);
      await recover();
    },
  });
}
