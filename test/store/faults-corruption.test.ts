import assert from "node:assert/strict";
import { copyFile, cp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { after, before, describe, test } from "node:test";
import { EverstepError } from "../../src/domain/errors.ts";
import { checkFolder } from "../../src/store/embedded/check-folder.ts";
import { IS_LONG, repetitions } from "../repetitions.ts";
import { type ScratchFolder, scratchFolder } from "./scratch-folder.ts";
import { reportedRandom, type SeededRandom } from "./seeded-random.ts";
import { assertCoded, fillFolder, LANES, openStore, verifyFolder, writeAndKill } from "./store-folder.ts";
import { type Acknowledged, verifyHistory } from "./verify-history.ts";

const LOG = "journal.sqlite-wal";
const COUNTER = "journal.counter";
/** Cuts at random positions, in addition to the significant ones. */
const CUTS = repetitions("EVERSTEP_CUTS", { few: 2, many: 20 });

describe("a journal whose last writes were cut off", () => {
  test("is reported if a commit is lost, and without its counter opens with every commit before the cut, and none in part", async (t) => {
    const random = reportedRandom(t, "EVERSTEP_FAULTS_SEED");
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, "killed");
    const acknowledged = await fillFolder(folder);
    const earlier = new Set([...acknowledged.values()].flatMap((commits) => [...commits.keys()]));
    await writeAndKill(folder, acknowledged, 150);
    const { size } = await stat(join(folder, LOG));
    assert.ok(size > 100_000, `the log has only ${size} bytes`);

    const within = Array.from({ length: CUTS }, () => random.integer(size));
    const cuts = [0, 1, 31, 32, 56, 32 + 4120, 32 + 4120 + 1, ...within, size - 4096, size - 1].sort((a, b) => a - b);
    const whole = await commitsAfterCut(scratch.path, folder, size, acknowledged, { at: size, tear: false });
    const all = [...acknowledged.values()].flatMap((commits) => [...commits]);
    for (const [key, name] of all) assert.equal(whole.get(key), name, `the ${key} is lost without a cut`);

    let smaller = new Map<string, string>();
    for (const at of cuts) {
      const tear = random.integer(2) === 0;
      const commits = await commitsAfterCut(scratch.path, folder, size, acknowledged, { at, tear });
      for (const key of earlier)
        assert.ok(commits.has(key), `a cut at ${at} took the ${key}, which was not in the log`);
      for (const [key, name] of smaller) assert.equal(commits.get(key), name, `a later cut at ${at} took the ${key}`);
      for (const [key, name] of commits) assert.equal(whole.get(key), name, `a cut at ${at} made up the ${key}`);
      smaller = commits;
    }
    assert.ok(smaller.size > earlier.size, "the last cut leaves some commits of the log");
  });
});

/** The commits in a copy of the folder whose log ends at that byte, or is torn there: it keeps its length but not its content. */
async function commitsAfterCut(
  scratch: string,
  folder: string,
  size: number,
  acknowledged: Acknowledged,
  { at, tear }: { at: number; tear: boolean },
): Promise<Map<string, string>> {
  const copy = join(scratch, "cut");
  await cp(folder, copy, { recursive: true });
  await truncate(join(copy, LOG), at);
  if (tear) await truncate(join(copy, LOG), size);
  try {
    // A cut that removed only unacknowledged commits (the writer was killed, or removed archived rows) lost nothing.
    const refusal = await verifyFolder(copy, acknowledged).then(
      () => null,
      (error: unknown) => error,
    );
    if (refusal !== null) assertCoded(refusal, ["store_corrupt"]);
    if (at === size) assert.equal(refusal, null);
    await rm(join(copy, COUNTER));
    const { commits } = await verifyFolder(copy, new Map());
    return commits;
  } catch (error) {
    throw new Error(`cut at ${at} of ${size}${tear ? ", torn" : ""}`, { cause: error });
  } finally {
    await rm(copy, { recursive: true });
  }
}

/** How many times each damage is done to each file. */
const ROUNDS = repetitions("EVERSTEP_DAMAGES", { few: 1, many: 10 });

/** What a flipped bit, a cut or a removal does to one of the journal's files. */
const JOURNAL_DAMAGES: Record<string, (path: string, random: SeededRandom) => Promise<void>> = {
  "a bit flipped": async (path, random) => {
    const content = await readFile(path);
    const at = random.integer(content.length);
    content[at] = (content[at] ?? 0) ^ (1 << random.integer(8));
    await writeFile(path, content);
  },
  "a sector zeroed": async (path, random) => {
    const content = await readFile(path);
    const at = random.integer(Math.max(1, Math.floor(content.length / 512))) * 512;
    content.fill(0, at, Math.min(at + 512, content.length));
    await writeFile(path, content);
  },
  cut: async (path, random) => await truncate(path, random.integer((await stat(path)).size)),
  removed: async (path) => await rm(path),
};

describe("a journal with damaged files", () => {
  for (const how of ["closed", "killed"] as const)
    test(`whose process ${how === "closed" ? "closed it" : "was killed"}: store_corrupt or all rows right`, async (t) => {
      const random = reportedRandom(t, "EVERSTEP_FAULTS_SEED");
      await using scratch = await scratchFolder();
      const folder = join(scratch.path, "whole");
      const acknowledged = await fillFolder(folder);
      if (how === "killed") await writeAndKill(folder, acknowledged, 150);
      const files = (await readdir(folder)).filter((name) => name.startsWith("journal."));
      assert.ok(files.includes(COUNTER) && files.includes(LOG) === (how === "killed"), files.join());
      const wrong: string[] = [];
      let reportCount = 0;
      const damages = Object.entries(JOURNAL_DAMAGES).flatMap((damage) => files.map((file) => ({ file, damage })));
      const inflicted = Array.from({ length: ROUNDS }, () => damages).flat();
      for (const { file, damage } of inflicted) {
        const [name, inflict] = damage;
        const copy = join(scratch.path, "damaged");
        await cp(folder, copy, { recursive: true });
        await inflict(join(copy, file), random);
        const error = await readAll(copy, acknowledged).catch((reason: unknown) => reason);
        if (error instanceof EverstepError && error.code === "store_corrupt") {
          assertCoded(error, ["store_corrupt"]);
          assert.match(error.message, /damaged[/](journal[.]|\w+[.]lance)/, `${file} ${name}: no file is named`);
          reportCount += 1;
        }
        // Without its journal a folder has tables of unknown origin.
        else if (error instanceof EverstepError) assertCoded(error, ["store_foreign"]);
        else if (error instanceof Error) wrong.push(`${file} ${name}: ${error.message.split("\n")[0]}`);
        await rm(copy, { recursive: true });
      }
      assert.deepEqual(wrong, [], "these were taken for good, and rows are wrong");
      assert.ok(reportCount > inflicted.length / 6, `only ${reportCount} of ${inflicted.length} damages were told`);
      t.diagnostic(`${reportCount} of ${inflicted.length} told, the others did no harm`);
    });
});

/** What a bad disk, a bad copy or a power loss does to a file. */
const DAMAGES: Record<string, (path: string) => Promise<void>> = {
  emptied: async (path) => await truncate(path, 0),
  "cut in half": async (path) => await truncate(path, Math.floor((await stat(path)).size / 2)),
  zeroed: async (path) => await writeFile(path, Buffer.alloc((await stat(path)).size)),
  removed: async (path) => await rm(path),
  "altered in the middle": async (path) => {
    const content = await readFile(path);
    const middle = Math.floor(content.length / 2);
    for (let index = middle; index < Math.min(middle + 16, content.length); index += 1)
      content[index] = ~(content[index] ?? 0);
    await writeFile(path, content);
  },
};

describe("a table with damaged files", () => {
  let whole: ScratchFolder;
  let folder: string;
  let acknowledged: Acknowledged;
  before(async () => {
    whole = await scratchFolder();
    folder = join(whole.path, "whole");
    acknowledged = await fillFolder(folder);
  });
  after(() => whole[Symbol.asyncDispose]());

  for (const [number, [damage, inflict]] of Object.entries(DAMAGES).entries()) {
    test(`that were ${damage}: store_corrupt or all rows right, and nothing is lost once they are put back`, async () => {
      await using scratch = await scratchFolder();
      const wrong: string[] = [];
      let noticed = 0;
      for (const [part, files] of await partsOfTables(folder, number)) {
        const copy = join(scratch.path, "damaged");
        await cp(folder, copy, { recursive: true });
        for (const file of files) await inflict(join(copy, file));
        const error = await readAll(copy, acknowledged).catch((reason: unknown) => reason);
        if (error instanceof EverstepError) {
          assertCoded(error, ["store_corrupt"]);
          for (const file of files) await copyFile(join(folder, file), join(copy, file));
          if (noticed++ === 0) await verifyFolder(copy, acknowledged);
        } else if (error instanceof Error) wrong.push(`${part}: ${error.message.split("\n")[0]}`);
        await rm(copy, { recursive: true });
      }
      assert.deepEqual(wrong, [], "these were taken for good, and rows are wrong");
      assert.ok(noticed > 0, `only ${noticed} damages were noticed`);
    });
  }

  // A row whose key is damaged is no longer found by it, which a read cannot distinguish from a row that never existed.
  test("with one bit altered: store_corrupt, all rows right, or found by a check of the folder", async (t) => {
    const random = reportedRandom(t, "EVERSTEP_FAULTS_SEED");
    await using scratch = await scratchFolder();
    const wrong: string[] = [];
    for (const [part, files] of await partsOfTables(folder, random.integer(READ_TABLES.length))) {
      const file = files[random.integer(files.length)] ?? "";
      const content = await readFile(join(folder, file));
      const at = random.integer(content.length);
      content[at] = (content[at] ?? 0) ^ (1 << random.integer(8));
      const copy = join(scratch.path, "damaged");
      await cp(folder, copy, { recursive: true });
      await writeFile(join(copy, file), content);
      const error = await readAll(copy, acknowledged).catch((reason: unknown) => reason);
      if (error instanceof EverstepError) assertCoded(error, ["store_corrupt"]);
      else if (error instanceof Error && (await checkFolder(copy)).problems.length === 0)
        wrong.push(`${part}, byte ${at}: ${error.message.split("\n")[0]}`);
      await rm(copy, { recursive: true });
    }
    assert.deepEqual(wrong, [], "these were taken for good, and rows are wrong");
  });
});

async function readAll(folder: string, acknowledged: Acknowledged): Promise<void> {
  await using store = await openStore(folder);
  await verifyHistory(store, { lanes: LANES, acknowledged });
  for (const q of ["says", "lane"]) await store.search({ q, limit: 50 });
}

const READ_TABLES = ["agent_steps", "conversation_messages", "queue"];

const PARTS = ["_versions", "data", "_indices"];

/**
 * The files of the tables that are read, by part: the newest manifest, the data, the indexes. By default each part is taken
 * from one table, chosen by `shift`, so that several tests cover all tables.
 */
async function partsOfTables(folder: string, shift: number): Promise<Map<string, string[]>> {
  const parts = new Map<string, string[]>();
  for (const [at, table] of READ_TABLES.entries()) {
    for (const part of IS_LONG ? PARTS : [PARTS[(at + shift) % PARTS.length] as string]) {
      const path = join(`${table}.lance`, part);
      const entries = await readdir(join(folder, path), { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
      const named = files.map((file) => relative(folder, file)).sort();
      // Manifest numbers count down, so the newest is listed first.
      parts.set(path, part === "_versions" ? named.slice(0, 1) : named);
    }
  }
  return parts;
}
