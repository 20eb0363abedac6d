import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import type { FolderReport } from "../../src/store/embedded/check-folder.ts";
import { PROGRAM } from "../server/spawn-everstep.ts";
import { formatFixtures, unpackFixture } from "./format-fixture.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { fillFolder, LANES, openStore, verifyFolder } from "./store-folder.ts";
import { startWriter } from "./writer-process.ts";

type Checked = { code: number | null; output: string; report: FolderReport | null };

function check(folder: string): Checked {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, "check", folder, "--json"], {
    encoding: "utf8",
  });
  const report = stdout.startsWith("{") ? (JSON.parse(stdout) as FolderReport) : null;
  return { code: status, output: stdout + stderr, report };
}

const change = (folder: string, sql: string): void => {
  const database = new DatabaseSync(join(folder, "journal.sqlite"));
  database.exec(sql);
  database.close();
};

function assertWhole(folder: string): void {
  const { code, report, output } = check(folder);
  assert.deepEqual({ code, problems: report?.problems }, { code: 0, problems: [] }, output);
  assert.ok((report?.rows.agent_steps ?? 0) > 20, output);
}

describe("everstep check", () => {
  test("finds nothing wrong with folders that were closed, and that were upgraded", async () => {
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, "closed");
    await fillFolder(folder);
    assertWhole(folder);
    const [fixture] = formatFixtures().toSorted((a, b) => a.format - b.format);
    assert.ok(fixture);
    const upgraded = unpackFixture(fixture, scratch.path);
    const before = check(upgraded);
    assert.match(before.output, /store_older: .*start Everstep on it once/);
    assert.equal(before.code, 1);
    await (await openStore(upgraded)).close();
    assertWhole(upgraded);
  });

  test("finds nothing wrong with a folder whose process was killed while it wrote and moved rows, and takes nothing from it", async () => {
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, "killed");
    const acknowledged = await fillFolder(folder);
    const writer = startWriter(
      { folder, lanes: LANES, pace_ms: 0, tuning: { move_after_rows: 50 }, constantly: ["checkpoint"] },
      acknowledged,
    );
    let left = 40 + Math.floor(Math.random() * 80);
    await writer.reported((report) => report.kind === "acknowledged" && --left === 0);
    await writer.kill();
    assertWhole(folder);
    await verifyFolder(folder, acknowledged);
    assertWhole(folder);
  });

  test("refuses a folder in use, and one that is not a data folder", async () => {
    await using scratch = await scratchFolder();
    await using _store = await openStore(join(scratch.path, "data"));
    const used = check(join(scratch.path, "data"));
    assert.match(used.output, /store_locked: another process \(pid \d+\) uses/);
    assert.equal(used.code, 1);
    assert.match(check(scratch.path).output, /store_foreign: .* has no journal.sqlite/);
  });

  test("says what is damaged and whom it concerns", async () => {
    await using scratch = await scratchFolder();
    const whole = join(scratch.path, "whole");
    await fillFolder(whole);
    const damages: [name: string, inflict: (folder: string) => Promise<void> | void, problem: RegExp][] = [
      [
        "row",
        (folder) => change(folder, "UPDATE packed_agent_state SET row = replace(row, 'count', 'cound')"),
        /the row of agent_state at position \d+ [(]session_id .+[)] does not match/,
      ],
      [
        "lost",
        (folder) =>
          change(folder, "DELETE FROM message_keys WHERE message_id = (SELECT min(message_id) FROM message_keys)"),
        /message_keys has \d+ rows, \d+ were written/,
      ],
      [
        "status",
        (folder) => change(folder, "UPDATE packed_agent_state SET status = 'done' WHERE status = 'running'"),
        /the row of agent_state at position \d+ [(]session_id .+[)] does not match its checksum or its key/,
      ],
      [
        "documents",
        (folder) => change(folder, "UPDATE session_documents SET params = '{\"other\":1}'"),
        /the parameters or the context of session/,
      ],
      [
        "referred",
        (folder) =>
          change(folder, "UPDATE journal_revision SET revision = revision + 1; DELETE FROM session_documents"),
        /parameters and context missing: session/,
      ],
      [
        "older",
        (folder) => change(folder, "UPDATE journal_revision SET revision = revision - 1"),
        /store_corrupt: .*journal[.]sqlite-wal is damaged, truncated or missing/,
      ],
      ["table", (folder) => alterData(join(folder, "agent_steps.lance", "data")), /agent_steps/],
      [
        "cut",
        async (folder) => {
          const path = join(folder, "journal.sqlite");
          await truncate(path, (await stat(path)).size / 2);
        },
        /journal.sqlite is damaged/,
      ],
    ];
    for (const [name, inflict, problem] of damages) {
      const folder = join(scratch.path, name);
      await cp(whole, folder, { recursive: true });
      await inflict(folder);
      const { code, report, output } = check(folder);
      assert.equal(code, 1, `${name}: ${output}`);
      assert.match(report?.problems.join("\n") ?? "", problem, name);
      await rm(folder, { recursive: true });
    }
  });
});

async function alterData(folder: string): Promise<void> {
  for (const file of await readdir(folder)) {
    const content = await readFile(join(folder, file));
    const middle = Math.floor(content.length / 3);
    for (let at = middle; at < middle + 64; at += 1) content[at] = ~(content[at] ?? 0);
    await writeFile(join(folder, file), content);
  }
}
