import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { openEmbeddedStore, type Tuning } from "../../src/store/embedded/embedded-store.ts";
import { FORMAT } from "../../src/store/embedded/migrations.ts";
import { repetitions } from "../repetitions.ts";
import { formatFixtures, unpackFixture, verifyFixture } from "./format-fixture.ts";
import { copyUnsynced, makeDisk, mayMount, mountDisk } from "./mounts.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { type SeededRandom, seededRandom, seedFrom } from "./seeded-random.ts";
import type { AppendOrder, AppendReport } from "./unsynced-writer.ts";
import type { UpgradeReport } from "./upgrade-writer.ts";
import { type Acknowledged, verifyHistory } from "./verify-history.ts";
import { type ReportingProcess, startReporting, startWriter, type Upkeep, type Writer } from "./writer-process.ts";

const ROUNDS = repetitions("EVERSTEP_POWER_LOSS_ROUNDS", { few: 4, many: 40 });
const UPGRADE_ROUNDS = repetitions("EVERSTEP_UPGRADE_LOSSES", { few: 1, many: 10 });
const LANES = 12;
const DISK_BYTES = 256 << 20;

/**
 * How the file system treats unsynced data. Without `auto_da_alloc` a rename does not flush the file; with `data=writeback` a
 * file may have its length but not its content; with `commit=300` metadata is delayed as long as possible.
 */
const FILE_SYSTEMS: readonly [string[], ...string[][]] = [
  ["commit=300", "noauto_da_alloc"],
  ["commit=1"],
  ["commit=1", "data=writeback", "noauto_da_alloc"],
  ["commit=300", "data=writeback", "nodelalloc"],
];

type Round = { options: string[]; pace_ms: number; tuning: Partial<Tuning>; constantly: Upkeep[]; wait: number };

function chooseRound(round: number, random: SeededRandom): Round {
  const options = random.pick(FILE_SYSTEMS);
  const pace_ms = random.pick([0, 4, 20]);
  const wait = random.integer(pace_ms === 0 ? 300 : 1_500);
  switch (round % 4) {
    case 0:
      return { options, pace_ms, wait, tuning: {}, constantly: [] };
    case 1:
      return { options, pace_ms, wait, tuning: { move_after_rows: 20, move_after_ms: 15 }, constantly: [] };
    case 2:
      return { options, pace_ms, wait, tuning: {}, constantly: ["checkpoint"] };
    default:
      return {
        options,
        pace_ms,
        wait,
        tuning: { move_after_rows: 50, compact_after_fragments: 3 },
        constantly: ["compact"],
      };
  }
}

/** A disk that repeatedly loses power: each time, the next image is what had reached the device. */
class Disk {
  readonly #folder: string;
  #losses = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get image(): string {
    return join(this.#folder, `disk-${this.#losses}.img`);
  }

  get place(): string {
    return join(this.#folder, "disk");
  }

  async make(): Promise<void> {
    await makeDisk(this.image, DISK_BYTES);
  }

  /** Mounts it, lets `start` write for a while, and cuts the power at the given moment. */
  async losePower<Report>(
    options: string[],
    start: (folder: string) => ReportingProcess<Report>,
    moment: (writer: ReportingProcess<Report>) => Promise<void>,
  ): Promise<void> {
    const before = this.image;
    {
      await using disk = await mountDisk(before, this.place, options);
      const writer = start(disk.folder);
      try {
        await moment(writer);
        await writer.freeze();
        this.#losses += 1;
        await copyUnsynced(before, this.image);
      } finally {
        await writer.kill();
      }
    }
    await rm(before);
  }
}

describe("the embedded store under loss of power", () => {
  test(`loses, duplicates and splits nothing in ${ROUNDS} losses of power on one disk`, async (t) => {
    if (!mayMount(t)) return;
    const seed = seedFrom("EVERSTEP_POWER_LOSS_SEED");
    t.diagnostic(`EVERSTEP_POWER_LOSS_SEED=${seed}`);
    const random = seededRandom(seed);
    await using scratch = await scratchFolder();
    const disk = new Disk(scratch.path);
    await disk.make();
    const acknowledged: Acknowledged = new Map();
    let commits = 0;

    for (let round = 0; round < ROUNDS; round += 1) {
      const { options, wait, ...rest } = chooseRound(round, random);
      const start = (folder: string): Writer =>
        startWriter({ folder: join(folder, "data"), lanes: LANES, ...rest }, acknowledged);
      await disk.losePower(options, start, async (writer) => {
        await writer.reported(() => true);
        await pause(wait);
      });
      // Two of three losses hit a disk that only the writer itself has recovered from the previous loss.
      if (round % 3 !== 2 && round < ROUNDS - 1) continue;
      await using place = await mountDisk(disk.image, disk.place);
      const store = await openEmbeddedStore({ folder: join(place.folder, "data") });
      try {
        commits = (await verifyHistory(store, { lanes: LANES, acknowledged })).commits.size;
      } catch (error) {
        throw new Error(`seed ${seed}, round ${round} (${options.join()} ${rest.constantly.join()})`, { cause: error });
      } finally {
        await store.close();
      }
    }
    t.diagnostic(`${commits} commits`);
    assert.ok(commits > ROUNDS * 20, `only ${commits} commits were written`);
  });
});

describe("a data folder of an earlier format under loss of power", () => {
  for (const fixture of formatFixtures().filter(({ format }) => format < FORMAT))
    test(`of format ${fixture.format} is the old one or the new one in ${UPGRADE_ROUNDS} losses while it is upgraded`, async (t) => {
      if (!mayMount(t)) return;
      const seed = seedFrom("EVERSTEP_POWER_LOSS_SEED");
      t.diagnostic(`EVERSTEP_POWER_LOSS_SEED=${seed}`);
      const random = seededRandom(seed);
      for (let round = 0; round < UPGRADE_ROUNDS; round += 1) {
        await using scratch = await scratchFolder();
        const disk = new Disk(scratch.path);
        await disk.make();
        {
          await using place = await mountDisk(disk.image, disk.place);
          unpackFixture(fixture, place.folder);
        }
        const start = (folder: string) =>
          startReporting<UpgradeReport>("./upgrade-writer.ts", join(folder, "data"), () => {});
        await disk.losePower(random.pick(FILE_SYSTEMS), start, async (upgrading) => {
          await upgrading.reported(() => true);
          await pause(random.integer(60));
        });
        await using place = await mountDisk(disk.image, disk.place);
        const store = await openEmbeddedStore({ folder: join(place.folder, "data") });
        try {
          await verifyFixture(store, fixture);
        } finally {
          await store.close();
        }
      }
    });
});

describe("the loss of power itself", () => {
  for (const sync of [false, true]) {
    const claim = sync ? "keeps every line that was synced" : "takes lines that were acknowledged and not synced";
    test(claim, async (t) => {
      if (!mayMount(t)) return;
      await using scratch = await scratchFolder();
      const disk = new Disk(scratch.path);
      await disk.make();
      let acknowledged = 0;
      const start = (folder: string): ReportingProcess<AppendReport> => {
        const order: AppendOrder = { file: join(folder, "lines"), sync };
        return startReporting<AppendReport>("./unsynced-writer.ts", JSON.stringify(order), ({ line }) => {
          acknowledged = line + 1;
        });
      };
      await disk.losePower(["commit=300"], start, async (writer) => await writer.reported(({ line }) => line === 100));
      await using place = await mountDisk(disk.image, disk.place);
      const text = await readFile(join(place.folder, "lines"), "utf8").catch(() => "");
      const kept = text.split("\n").length - 1;
      if (sync) assert.ok(kept >= acknowledged, `${kept} of ${acknowledged} lines are left`);
      else assert.ok(kept < acknowledged, `all ${acknowledged} lines are there, so the loss of power is none`);
    });
  }
});
