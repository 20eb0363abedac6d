import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { connect } from "@lancedb/lancedb";
import { FORMAT, MIGRATIONS } from "../../src/store/embedded/migrations.ts";
import { CheckedRows, checksumOf } from "../../src/store/embedded/row-checksums.ts";
import { EMBEDDED_TABLES, TABLES, type Values } from "../../src/store/embedded/tables.ts";
import { repetitions } from "../repetitions.ts";
import { mustAdvance, WORKER } from "./fixtures.ts";
import { formatFixtures, unpackFixture, verifyFixture } from "./format-fixture.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { seededRandom, seedFrom } from "./seeded-random.ts";
import { assertCoded, assertUnchanged, fingerprint, openStore } from "./store-folder.ts";
import type { UpgradeReport } from "./upgrade-writer.ts";
import { startReporting } from "./writer-process.ts";

const FIXTURES = formatFixtures();
const [OLDEST] = FIXTURES.toSorted((a, b) => a.format - b.format);
const KILLS = repetitions("EVERSTEP_UPGRADE_KILLS", { few: 3, many: 30 });

const setFormat = (folder: string, format: number): void => {
  const database = new DatabaseSync(join(folder, "journal.sqlite"));
  database.exec(`PRAGMA user_version = ${format}`);
  database.close();
};

describe("a data folder of an earlier format", () => {
  test("is kept as a fixture for every format that can be upgraded", () => {
    const formats = FIXTURES.map(({ format }) => format).sort((a, b) => a - b);
    const upgradable = MIGRATIONS.map(({ format }) => format - 1);
    assert.deepEqual(
      upgradable.filter((format) => !formats.includes(format)),
      [],
    );
    assert.equal(MIGRATIONS.at(-1)?.format, FORMAT);
  });

  for (const fixture of FIXTURES) {
    test(`${fixture.format} opens with every row intact, goes on, and stays intact when its rows are moved`, async () => {
      await using scratch = await scratchFolder();
      const folder = unpackFixture(fixture, scratch.path);
      {
        const notices: string[] = [];
        await using store = await openStore(folder, {}, (text) => notices.push(text));
        assert.equal(notices.length, FORMAT - fixture.format, notices.join("; "));
        await verifyFixture(store, fixture);
        await store.compact();
        await verifyFixture(store, fixture);
      }
      await using store = await openStore(folder);
      await verifyFixture(store, fixture);
      const [owned] = await store.claimSessions({ worker: WORKER, limit: 1 });
      assert.ok(owned);
      const pause_reason = { kind: "breakpoint" as const, step_token: "7" };
      const { step } = await mustAdvance(store, owned, { session: { status: "paused", pause_reason } });
      await store.compact();
      const { session_id, iteration } = step;
      assert.deepEqual(
        await store.listSteps({ session_id, min_iteration: iteration, status: "ok", limit: 9, offset: 0 }),
        [step],
      );
      assert.deepEqual((await store.getSession(session_id))?.pause_reason, pause_reason);
      const [copy] = await copiesOf(folder, session_id);
      assert.deepEqual(copy?.["pause_reason"], JSON.stringify(pause_reason));
      assert.deepEqual(copy?.["context"], JSON.stringify(step.state));
    });
  }

  test(`is the old one or the new one after each of ${KILLS} kills while it is upgraded`, async (t) => {
    assert.ok(OLDEST);
    const seed = seedFrom("EVERSTEP_UPGRADE_SEED");
    t.diagnostic(`EVERSTEP_UPGRADE_SEED=${seed}`);
    const random = seededRandom(seed);
    await using scratch = await scratchFolder();
    const seen = new Map<number, number>();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const place = join(scratch.path, String(kill));
      await mkdir(place);
      const folder = unpackFixture(OLDEST, place);
      // The same folder is hit twice; the second time it has the first kill's leftovers.
      for (let hit = 0; hit < 2; hit += 1) await killWhileUpgrading(folder, random.integer(60));
      const format = formatOf(folder);
      assert.ok(format === OLDEST.format || MIGRATIONS.some((migration) => migration.format === format));
      seen.set(format, (seen.get(format) ?? 0) + 1);
      await using store = await openStore(folder);
      await verifyFixture(store, OLDEST).catch((error: unknown) => {
        throw new Error(`seed ${seed}, kill ${kill}, format ${format}`, { cause: error });
      });
    }
    t.diagnostic([...seen].map(([format, count]) => `format ${format}: ${count}`).join(", "));
  });
});

/** The rows of a session in the LanceDB table of sessions, whose columns are in another order after an upgrade. */
async function copiesOf(folder: string, session_id: string): Promise<Record<string, unknown>[]> {
  const database = await connect(folder);
  const table = await database.openTable("agent_state");
  const rows = await table.query().where(`session_id = '${session_id}'`).toArray();
  database.close();
  return rows as Record<string, unknown>[];
}

/** Kills the process this long after it starts to upgrade, unless it is done by then. */
async function killWhileUpgrading(folder: string, wait: number): Promise<void> {
  const upgrading = startReporting<UpgradeReport>("./upgrade-writer.ts", folder, () => {});
  await upgrading.reported(({ kind }) => kind === "upgrading" || kind === "opened");
  await pause(wait);
  await upgrading.kill();
}

function formatOf(folder: string): number {
  const database = new DatabaseSync(join(folder, "journal.sqlite"));
  const format = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  database.close();
  return format;
}

describe("a data folder of a later format", () => {
  test("is refused with store_newer, and nothing in it is touched", async () => {
    assert.ok(OLDEST);
    await using scratch = await scratchFolder();
    const folder = unpackFixture(OLDEST, scratch.path);
    setFormat(folder, FORMAT + 1);
    const before = await fingerprint(folder, () => true);
    await assert.rejects(openStore(folder), (error) => {
      assertCoded(error, ["store_newer"]);
      return true;
    });
    assertUnchanged(before, await fingerprint(folder, () => true));
  });
});

describe("a row of history that was stored before its table had a column", () => {
  const checked = new CheckedRows(EMBEDDED_TABLES, "queue");
  const row: Values = TABLES.queue.map(({ name, kind }, at) => (kind === "text" ? name : at));
  const text = JSON.stringify([null, ...row.slice(1)]);
  const shorter = JSON.stringify([null, ...row.slice(1, -1)]);
  const reading = (values: Values, checksum: number): Values | null => {
    const byName = new Map(TABLES.queue.map(({ name }, at) => [name, values[at] ?? null]));
    return checked.check(checked.columns.map((name) => (name === "checksum" ? checksum : (byName.get(name) ?? null))));
  };
  const without: Values = [...row.slice(0, -1), null];

  test("is compared over the columns that it had", () => {
    assert.deepEqual(reading(row, checksumOf(crc32(text), row.length)), row);
    assert.deepEqual(reading(without, checksumOf(crc32(shorter), row.length - 1)), without);
  });

  test("is damaged if a later column has a value, or an earlier one has another", () => {
    assert.equal(reading(row, checksumOf(crc32(shorter), row.length - 1)), null);
    assert.equal(reading(without.with(3, "other"), checksumOf(crc32(shorter), row.length - 1)), null);
    assert.equal(reading(without, checksumOf(crc32(text), row.length)), null);
  });

  test("has the width of the first format if it carries none", () => {
    const old = checksumOf(crc32(text), row.length) % 2 ** 32;
    assert.deepEqual(reading(row, old), row);
  });
});
