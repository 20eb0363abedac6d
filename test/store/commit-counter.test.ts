import assert from "node:assert/strict";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { CommitCounter, JournalTotals } from "../../src/store/embedded/commit-counter.ts";
import { scratchFolder } from "./scratch-folder.ts";

const totals = new JournalTotals();
totals.add("agent_steps", -7);

/** A counter that recorded positions 1 to 3. */
async function countTo3(path: string): Promise<Buffer> {
  const counter = new CommitCounter(path);
  for (const position of [1, 2, 3]) counter.record({ position, revision: 5, totals });
  counter.close();
  return await readFile(path);
}

describe("a commit counter", () => {
  test("reports the last recorded position, and continues from there when it is opened again", async () => {
    await using scratch = await scratchFolder();
    const path = join(scratch.path, "counter");
    await countTo3(path);
    const counted = CommitCounter.read(path);
    assert.deepEqual([counted?.position, counted?.revision], [3, 5]);
    assert.equal(counted?.totals.difference(totals), null);
    const again = new CommitCounter(path);
    again.record({ position: 4, revision: 5, totals });
    again.close();
    assert.equal(CommitCounter.read(path)?.position, 4);
  });

  test("that is cut anywhere or has any one byte changed reports the last position, the one before, or nothing", async () => {
    await using scratch = await scratchFolder();
    const path = join(scratch.path, "counter");
    const whole = await countTo3(path);
    for (let length = 0; length < whole.length; length += 1) {
      await truncate(path, length);
      assert.ok([undefined, 2, 3].includes(CommitCounter.read(path)?.position), `cut at ${length}`);
      if (length % 100 === 0) new CommitCounter(path).close();
      await writeFile(path, whole);
    }
    for (let at = 0; at < whole.length; at += 1) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      await writeFile(path, changed);
      assert.ok([2, 3].includes(CommitCounter.read(path)?.position ?? 0), `byte ${at}`);
    }
  });
});
