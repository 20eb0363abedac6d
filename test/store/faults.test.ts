import assert from "node:assert/strict";
import { copyFile, mkdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import type { Worker } from "node:worker_threads";
import { aSession, mustCreate } from "./fixtures.ts";
import { scratchFolder } from "./scratch-folder.ts";
import {
  assertUnchanged,
  fillFolder,
  fingerprint,
  isOfJournal,
  isOfTable,
  isOwnerNote,
  LANES,
  openStore,
  refusesToOpen,
  rejectsWith,
  verifyFolder,
  writeCommits,
} from "./store-folder.ts";
import type { Acknowledged } from "./verify-history.ts";
import { startWriter, type WriterReport } from "./writer-process.ts";

const journalOf = (folder: string): string => join(folder, "journal.sqlite");

describe("a folder that is in use", () => {
  test("is refused to a second process, keeps serving the first one, and opens when that one is killed", async () => {
    await using folder = await scratchFolder();
    const acknowledged: Acknowledged = new Map();
    const order = { folder: folder.path, lanes: LANES, pace_ms: 1, tuning: {}, constantly: [] };
    const writer = startWriter(order, acknowledged);
    const isAcknowledged = (report: WriterReport): boolean => report.kind === "acknowledged";
    try {
      await writer.reported(isAcknowledged);
      const error = await refusesToOpen(folder.path, "store_locked");
      assert.match(error.next, /EVERSTEP_STORE=postgres:\/\//);
      assert.match(error.message, new RegExp(`pid ${writer.pid}`));
      await writer.reported(isAcknowledged);
      await refusesToOpen(folder.path, "store_locked");
      await writer.reported(isAcknowledged);
    } finally {
      await writer.kill();
    }
    await verifyFolder(folder.path, acknowledged);
  });

  test("is refused to a second store of the same process, and opens when the first is closed", async () => {
    await using folder = await scratchFolder();
    const acknowledged: Acknowledged = new Map();
    {
      await using store = await openStore(folder.path);
      await writeCommits(store, 10, acknowledged);
      await refusesToOpen(folder.path, "store_locked");
      await writeCommits(store, 10, acknowledged);
      const order = { folder: folder.path, lanes: LANES, pace_ms: 1, tuning: {}, constantly: [] };
      const second = startWriter(order, new Map());
      await assert.rejects(
        second.reported(() => true),
        /store_locked/,
        "a store that was refused does not free the lock of the other",
      );
    }
    await verifyFolder(folder.path, acknowledged);
  });
});

describe("a folder that is not what it should be", () => {
  test("holds files of other programs: they are ignored and left alone", async () => {
    await using folder = await scratchFolder();
    await mkdir(join(folder.path, "photos"));
    await writeFile(join(folder.path, "notes.txt"), "mine");
    await writeFile(join(folder.path, "photos", "agent_steps.lance"), "mine too");
    const acknowledged = await fillFolder(folder.path);
    await verifyFolder(folder.path, acknowledged);
    assert.equal(await readFile(join(folder.path, "notes.txt"), "utf8"), "mine");
    assert.equal(await readFile(join(folder.path, "photos", "agent_steps.lance"), "utf8"), "mine too");
  });

  for (const [what, content] of [
    ["junk", Buffer.alloc(30_000, "junk ")],
    ["zeros", Buffer.alloc(30_000)],
    ["a text", Buffer.from("This is not a database.\n")],
  ] as const) {
    test(`has a journal that is ${what}: refused, and the file stays as it is`, async () => {
      await using folder = await scratchFolder();
      await writeFile(journalOf(folder.path), content);
      await refusesToOpen(folder.path, "store_corrupt", "store_foreign");
      assert.deepEqual(await readFile(journalOf(folder.path)), content);
    });
  }

  test("has a journal that was cut off: refused, and all files stay as they are", async () => {
    await using folder = await scratchFolder();
    await fillFolder(folder.path);
    const whole = await readFile(journalOf(folder.path));
    for (const part of [0.9, 0.5, 0.1]) {
      await writeFile(journalOf(folder.path), whole);
      await truncate(journalOf(folder.path), Math.floor(whole.length * part));
      const before = await fingerprint(folder.path, (path) => !isOwnerNote(path));
      await refusesToOpen(folder.path, "store_corrupt");
      assertUnchanged(before, await fingerprint(folder.path, (path) => !isOwnerNote(path)));
    }
  });

  test("has tables and no journal, or an empty one: refused, and opens again when the journal is put back", async () => {
    await using folder = await scratchFolder();
    await using elsewhere = await scratchFolder();
    const acknowledged = await fillFolder(folder.path);
    const kept = join(elsewhere.path, "kept");
    await copyFile(journalOf(folder.path), kept);
    const tables = await fingerprint(folder.path, isOfTable);
    assert.ok(tables.size > 5);

    await rm(journalOf(folder.path));
    await refusesToOpen(folder.path, "store_foreign", "store_corrupt");
    await refusesToOpen(folder.path, "store_foreign", "store_corrupt");
    assertUnchanged(tables, await fingerprint(folder.path, isOfTable));
    await writeFile(journalOf(folder.path), "");
    await refusesToOpen(folder.path, "store_foreign", "store_corrupt");
    assertUnchanged(tables, await fingerprint(folder.path, isOfTable));

    await copyFile(kept, journalOf(folder.path));
    await verifyFolder(folder.path, acknowledged);
  });

  test("has a table that another program made: refused, and the table stays as it is", async () => {
    await using folder = await scratchFolder();
    await mkdir(join(folder.path, "agent_steps.lance", "_versions"), { recursive: true });
    await writeFile(join(folder.path, "agent_steps.lance", "_versions", "1.manifest"), "junk");
    const before = await fingerprint(folder.path, isOfTable);
    await refusesToOpen(folder.path, "store_foreign");
    await refusesToOpen(folder.path, "store_foreign");
    assertUnchanged(before, await fingerprint(folder.path, isOfTable));
  });

  test("has a journal.sqlite of another program: refused, and the file stays as it is", async () => {
    await using folder = await scratchFolder();
    const database = new DatabaseSync(journalOf(folder.path));
    database.exec("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')");
    database.close();
    const before = await fingerprint(folder.path, isOfJournal);
    await refusesToOpen(folder.path, "store_foreign");
    assertUnchanged(before, await fingerprint(folder.path, isOfJournal));
  });

  for (const [version, schema, code] of [
    ["a newer", 1000, "store_newer"],
    ["an older", 1, "store_older"],
  ] as const)
    test(`was written by ${version} version: refused, and all files stay as they are`, async () => {
      await using folder = await scratchFolder();
      await fillFolder(folder.path);
      const database = new DatabaseSync(journalOf(folder.path));
      database.exec(`PRAGMA user_version = ${schema}`);
      database.close();
      // Reading the file may leave empty side files of SQLite next to it.
      const isKept = (path: string) => !isOwnerNote(path) && !/-(?:shm|wal)$/.test(path);
      const before = await fingerprint(folder.path, isKept);
      await refusesToOpen(folder.path, code);
      assertUnchanged(before, await fingerprint(folder.path, isKept));
    });

  test("is a file, or lies below one: refused, and the file stays as it is", async () => {
    await using folder = await scratchFolder();
    const file = join(folder.path, "file");
    await writeFile(file, "mine");
    await refusesToOpen(file, "store_unavailable", "store_foreign");
    await refusesToOpen(join(file, "below"), "store_unavailable", "store_foreign");
    assert.equal(await readFile(file, "utf8"), "mine");
  });

  test("is absent with the folders above it: created", async () => {
    await using folder = await scratchFolder();
    const deep = join(folder.path, "with a space", "it's", "“deep” é");
    const acknowledged = await fillFolder(deep);
    await verifyFolder(deep, acknowledged);
  });
});

describe("a store whose worker thread dies again and again", () => {
  test("fails pending and new calls with a coded error, closes, and has lost nothing when opened again", async () => {
    await using folder = await scratchFolder();
    const threads: Worker[] = [];
    const notice = (thread: Worker): void => void threads.push(thread);
    process.on("worker", notice);
    const store = await openStore(folder.path);
    assert.equal(threads.length, 1, "the store has one worker thread");

    const acknowledged = await writeCommits(store, 50);
    for (let deaths = 1; deaths < MOST_DEATHS; deaths += 1) {
      await threads.at(-1)?.terminate();
      await store.counts();
      assert.equal(threads.length, deaths + 1, "another one takes its place");
    }
    await writeCommits(store, 50, acknowledged);
    process.off("worker", notice);
    const failure = rejectsWith(writeCommits(store, 1_000_000, acknowledged), "store_unavailable", "store_closed");
    await threads.at(-1)?.terminate();
    await failure;
    await rejectsWith(mustCreate(store, aSession()), "store_unavailable", "store_closed");
    await rejectsWith(
      store.listSteps({ agent_id: "lane-0", limit: 500, offset: 0 }),
      "store_unavailable",
      "store_closed",
    );
    await store.close();
    await verifyFolder(folder.path, acknowledged);
  });
});

/** After this many within a minute the store gives up. */
const MOST_DEATHS = 5;

describe("a store that was closed", () => {
  test("refuses commits and reads, and a second close is harmless", async () => {
    await using folder = await scratchFolder();
    const store = await openStore(folder.path);
    const acknowledged = await writeCommits(store, 20);
    await store.close();
    await store.close();
    await rejectsWith(mustCreate(store, aSession()), "store_closed");
    await rejectsWith(store.listSteps({ agent_id: "lane-0", limit: 500, offset: 0 }), "store_closed");
    await verifyFolder(folder.path, acknowledged);
  });
});
