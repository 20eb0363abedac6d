import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { VolumeFiles } from "../../src/archive/volume-files.ts";
import { EverstepError } from "../../src/domain/errors.ts";
import { newId, now } from "../../src/domain/ids.ts";
import type { ArchivedRange, Volume } from "../../src/domain/volume.ts";
import { EmbeddedTables } from "../../src/store/embedded/tables.ts";
import { SCHEMA } from "../../src/store/schema.ts";
import type { StoredStepRow } from "../../src/store/store.ts";
import { aSession, aStep } from "../store/fixtures.ts";
import { scratchFolder } from "../store/scratch-folder.ts";

const ROWS = 300;

const aVolume = (location: string): Volume => ({
  volume_id: newId(),
  state: "moving",
  location,
  format: 1,
  created_at: now(),
  sessions: 1,
  steps: ROWS,
  messages: 0,
  bytes: 0,
  oldest_ended_at: null,
  newest_ended_at: null,
  checksum: null,
});

function someSteps(): StoredStepRow[] {
  const session = aSession();
  return Array.from({ length: ROWS }, (_, iteration): StoredStepRow => {
    const { state: _state, ...step } = aStep(
      { ...session, iteration: iteration - 1 },
      { text: `Schritt ${iteration} \ud800`, data: { n: 1 } },
    );
    return { ...step, state: '{"n":1}', state_kind: "whole", base_iteration: iteration, pos: iteration };
  });
}

const rangeOf = (volume: Volume, steps: StoredStepRow[]): ArchivedRange => ({
  range_id: "range",
  volume_id: volume.volume_id,
  kind: "steps",
  state: "archived",
  owner_id: steps[0]?.session_id as string,
  agent_id: null,
  first: 0,
  last: ROWS - 1,
  error_rows: 0,
  first_row: 0,
  rows: ROWS,
});

async function write(files: VolumeFiles, volume: Volume, steps: StoredStepRow[]): Promise<void> {
  const writer = await files.writer(volume);
  for (const step of steps) await writer.add("steps", step);
  await writer.finish();
  await files.sync(volume);
  assert.deepEqual(await files.sum(volume, writer.kinds), writer.written);
}

describe("a volume", () => {
  test("written by an earlier version with fewer columns is read with the defaults of the missing ones", async () => {
    await using scratch = await scratchFolder();
    const volume = aVolume(scratch.path);
    const steps = someSteps();
    const { directives: _, calls: __, ...columns } = SCHEMA.agent_steps;
    const earlier = new EmbeddedTables({ ...SCHEMA, agent_steps: columns });
    await write(new VolumeFiles(null, earlier), volume, steps);
    const read = await new VolumeFiles(null).steps(volume, rangeOf(volume, steps), 0, ROWS);
    assert.deepEqual(read, steps);
  });

  test("with a changed byte is reported as damaged on reading, and never returns a wrong row", async () => {
    await using scratch = await scratchFolder();
    const volume = aVolume(scratch.path);
    const steps = someSteps();
    await write(new VolumeFiles(null), volume, steps);
    const folder = join(scratch.path, `steps-${volume.volume_id}.lance`, "data");
    const [name = ""] = await readdir(folder);
    const whole = await readFile(join(folder, name));
    let damages = 0;
    for (let at = 0; at < 40; at++) {
      const bytes = Buffer.from(whole);
      const place = Math.floor((whole.length * (at + 0.5)) / 40);
      bytes[place] = (bytes[place] as number) ^ 0x55;
      await writeFile(join(folder, name), bytes);
      const files = new VolumeFiles(null);
      try {
        const { checksum, ...sum } = await files.sum(volume, ["steps"]);
        assert.deepEqual(sum, { steps: ROWS, messages: 0 });
        const read = await files.steps(volume, rangeOf(volume, steps), 0, ROWS);
        // The damage hit bytes that readers ignore, or the position that the store assigned, which only the overall sum covers.
        assert.deepEqual(
          read.map((row) => ({ ...row, pos: 0 })),
          steps.map((row) => ({ ...row, pos: 0 })),
        );
        assert.ok(checksum !== null);
      } catch (error) {
        if (!(error instanceof EverstepError)) throw error;
        assert.equal(error.code, "archive_damaged");
        damages += 1;
      } finally {
        await files.close();
      }
    }
    assert.ok(damages > 20, `${damages} of 40 were noticed`);
  });
});
