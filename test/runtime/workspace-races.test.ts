import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { StepError } from "../../src/monikers/moniker.ts";
import { Workspace } from "../../src/monikers/tools/workspace.ts";
import { repetitions } from "../repetitions.ts";
import { scratchFolder } from "../store/scratch-folder.ts";

const SECRET = "the secret word";
const READS = repetitions("EVERSTEP_RACE_READS", { few: 6_000, many: 20_000 });
const WRITES = 1500;
const AT_ONCE = 8;

/** A workspace in which another process constantly swaps files and folders with links that lead out. */
async function unsteadyWorkspace() {
  await using stack = new AsyncDisposableStack();
  const scratch = stack.use(await scratchFolder());
  const [root, outside] = [join(scratch.path, "workspace"), join(scratch.path, "outside")];
  for (const folder of [root, outside]) await mkdir(folder);
  await writeFile(join(outside, "file.txt"), SECRET);
  const script = fileURLToPath(new URL("./exchange-links.ts", import.meta.url));
  const child = spawn(process.execPath, [script, root, outside], { stdio: ["ignore", "pipe", "inherit"] });
  stack.defer(async () => {
    const exited = once(child, "exit");
    if (child.exitCode === null && child.kill("SIGKILL")) await exited;
  });
  await once(child.stdout, "data");
  const resources = stack.move();
  return { outside, child, workspace: new Workspace(root), [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

/** Runs it this many times, several at once; counts refusals, and fails on any other error. */
async function repeat<Result>(
  times: number,
  work: (turn: number) => Promise<Result>,
): Promise<Map<Result | "refused", number>> {
  const counts = new Map<Result | "refused", number>();
  let turn = 0;
  const lane = async (): Promise<void> => {
    while (turn < times) {
      const result = await work(turn++).catch((error: unknown) => {
        assert.ok(error instanceof StepError && /^file_(?:refused|missing)$/.test(error.code), String(error));
        return "refused" as const;
      });
      counts.set(result, (counts.get(result) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return counts;
}

describe("while links are exchanged", () => {
  test("no read reveals what is outside", { timeout: 120_000 }, async () => {
    await using unsteady = await unsteadyWorkspace();
    const { workspace, child } = unsteady;
    const counts = await repeat(READS, (turn) => workspace.read(turn % 2 ? "file.txt" : "folder/file.txt"));
    assert.equal(child.exitCode, null, "the other process died, so nothing was exchanged");
    assert.deepEqual([...counts.keys()].toSorted(), ["plain words", "refused"], JSON.stringify([...counts]));
    assert.equal(counts.get(SECRET), undefined);
  });

  test("no list and no search reveals what is outside", { timeout: 120_000 }, async () => {
    await using unsteady = await unsteadyWorkspace();
    await writeFile(join(unsteady.outside, "other name.txt"), SECRET);
    const counts = await repeat(READS / 10, async (turn) => {
      if (turn % 2) return JSON.stringify(await unsteady.workspace.search(["secret"]));
      return String((await unsteady.workspace.list(turn % 4 ? "folder" : ".")).includes("folder/other name.txt"));
    });
    assert.equal(unsteady.child.exitCode, null);
    assert.deepEqual(
      [...counts.keys()].filter((outcome) => !["[]", "false", "refused"].includes(outcome)),
      [],
    );
  });

  test("no write arrives outside", { timeout: 120_000 }, async () => {
    await using unsteady = await unsteadyWorkspace();
    const { workspace, outside, child } = unsteady;
    const counts = await repeat(WRITES, async (turn) => {
      await workspace.write(turn % 2 ? "folder/mine.txt" : "folder/below/mine.txt", "mine");
      return "written";
    });
    assert.equal(child.exitCode, null);
    assert.ok((counts.get("written") ?? 0) > 0 && (counts.get("refused") ?? 0) > 0, JSON.stringify([...counts]));
    assert.deepEqual(await readdir(outside), ["file.txt"]);
  });
});
