import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { textOfSvg } from "../../build/terminal-svg.ts";
import { REPOSITORY } from "../repository-files.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { everstep, type Ran } from "./command.ts";

const TIMEOUT = { timeout: 120_000 };

/**
 * Removes what differs between two runs: ids, addresses, process ids, times, folders, and how many times a question was asked.
 */
const withoutChance = (line: string): string =>
  line
    .trimEnd()
    .replaceAll(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, "ID")
    .replaceAll(/127\.0\.0\.1:\d+/g, "ADDRESS")
    .replaceAll(/process \d+/g, "process PID")
    .replaceAll(/\d+\.\d s\b/g, "TIME")
    .replaceAll(/by step \d+/g, "by step N")
    .replaceAll(/cd \S+ && .*/g, "cd FOLDER");

describe("everstep demo", () => {
  let ran: Ran;
  let lines: string[];
  let log: string[];
  let letters: string[];
  before(async () => {
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, "demo");
    // A person's own settings must not affect the demo.
    const environment = { EVERSTEP_STORE: "postgres://nobody@127.0.0.1:1/none", EVERSTEP_TOKEN: "secret" };
    ran = await everstep(["demo", "--fast", "--folder", folder], environment, scratch.path);
    lines = ran.stdout.split("\n");
    const read = (path: string) => readFile(join(folder, path), "utf8").catch(() => "");
    log = (await read("tool-calls.log")).trim().split("\n");
    letters = (await read("workspace/outbox/19.txt")).trim().split("\n");
  }, TIMEOUT);

  test("ends well and prints no escape codes into a pipe", () => {
    assert.deepEqual([ran.code, ran.stderr], [0, ""]);
    assert.ok(!ran.stdout.includes("\u001b"));
  });

  test("kills its server in the middle of a tool call, and no call was made twice", () => {
    assert.match(ran.stdout, /process \d+ is dead \(SIGKILL\)/);
    assert.deepEqual(log, ["book 17", "book 19", "send_reminder 17", "send_reminder 19"]);
    assert.equal(letters.length, 1);
    assert.match(ran.stdout, /I was interrupted while own\/send_reminder ran/);
  });

  test("shows that guidance sent during the outage was used once", () => {
    assert.match(ran.stdout, /Ann's words: consumed by step \d+; steps that got them: 1\./);
    assert.match(ran.stdout, /Open in total: 460 EUR/);
  });

  test("prints the future of the fork beside the one that happened", () => {
    assert.match(ran.stdout, /as it went +│ with other words/);
    assert.match(ran.stdout, /own\/send_reminder 17 → sent +│ tool: files\/write calls\.md/);
  });

  test("is what the picture in the README shows", async () => {
    const svg = await readFile(join(REPOSITORY, "docs/pictures/demo.svg"), "utf8");
    const [command, ...pictured] = textOfSvg(svg);
    assert.equal(command, "$ npx everstep demo");
    assert.deepEqual(
      pictured.map(withoutChance),
      lines.slice(0, -1).map(withoutChance),
      "it prints something else now: npm run record:demo",
    );
  });

  test("refuses a folder that has something in it", TIMEOUT, async () => {
    const { code, stderr } = await everstep(["demo", "--folder", REPOSITORY]);
    assert.equal(code, 1);
    assert.match(stderr, /is not empty; choose a new folder/);
  });
});
