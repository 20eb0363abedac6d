import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { access, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { StepError } from "../../src/monikers/moniker.ts";
import { Workspace } from "../../src/monikers/tools/workspace.ts";
import { scratchFolder } from "../store/scratch-folder.ts";

/** A workspace next to a folder that it must never reach. */
async function twoFolders() {
  const scratch = await scratchFolder();
  const root = join(scratch.path, "workspace");
  const outside = join(scratch.path, "outside");
  await mkdir(root);
  await mkdir(outside);
  await writeFile(join(outside, "secret.txt"), "the secret word");
  await writeFile(join(root, "inside.txt"), "plain words");
  return { ...scratch, root, outside, workspace: new Workspace(root) };
}
type Folders = Awaited<ReturnType<typeof twoFolders>>;

/** Paths that lead out or are not files, and how to create them. */
const TRAPS: [string, string, (folders: Folders) => Promise<unknown>][] = [
  ["a path with ..", "../outside/secret.txt", async () => {}],
  ["a path with .. in the middle", "a/../../outside/secret.txt", async () => {}],
  ["a path with .. after the workspace's name", "/workspace/../outside/secret.txt", async () => {}],
  ["an absolute path", "/etc/passwd", async () => {}],
  ["an absolute path that begins like the workspace's name", "/workspaces/x", async () => {}],
  ["the root of the file system", "/", async () => {}],
  ["an empty path", "", async () => {}],
  ["a path with NUL", "inside.txt\0.md", async () => {}],
  ["a path of 5,000 characters", "a/".repeat(2500), async () => {}],
  ["a name of 300 characters", "n".repeat(300), async () => {}],
  ["a path below a file", "inside.txt/below.txt", async () => {}],
  [
    "a link to a file outside",
    "link.txt",
    ({ root, outside }) => symlink(join(outside, "secret.txt"), join(root, "link.txt")),
  ],
  ["a link to a folder outside", "link/secret.txt", ({ root, outside }) => symlink(outside, join(root, "link"))],
  [
    "a link of a link to a folder outside",
    "far/secret.txt",
    async ({ root, outside }) => {
      await symlink(outside, join(root, "near"));
      await symlink("near", join(root, "far"));
    },
  ],
  [
    "a link with a relative target outside",
    "up.txt",
    ({ root }) => symlink("../outside/secret.txt", join(root, "up.txt")),
  ],
  [
    "a dangling link to a file outside",
    "new.txt",
    ({ root, outside }) => symlink(join(outside, "new.txt"), join(root, "new.txt")),
  ],
  [
    "a path through a dangling link to a folder outside",
    "gone/new.txt",
    ({ root, outside }) => symlink(join(outside, "gone"), join(root, "gone")),
  ],
  ["a link to itself", "loop", ({ root }) => symlink("loop", join(root, "loop"))],
  ["a folder", "folder", ({ root }) => mkdir(join(root, "folder"))],
  ["the workspace itself", "/workspace", async () => {}],
  ["a pipe", "pipe", async ({ root }) => execFileSync("mkfifo", [join(root, "pipe")])],
];

describe("the workspace refuses", () => {
  for (const [what, path, make] of TRAPS) {
    test(`to read ${what}`, { timeout: 10_000 }, async () => {
      await using folders = await twoFolders();
      await make(folders);
      await refuses(folders.workspace.read(path));
    });

    test(`to write ${what}, and changes nothing anywhere`, { timeout: 10_000 }, async () => {
      await using folders = await twoFolders();
      await make(folders);
      const before = await listing(folders.path);
      await refuses(folders.workspace.write(path, "mine now"));
      assert.deepEqual(await listing(folders.path), before);
      assert.equal(await readFile(join(folders.outside, "secret.txt"), "utf8"), "the secret word");
    });
  }

  test("to reveal whether something outside exists", async () => {
    await using folders = await twoFolders();
    await symlink(folders.outside, join(folders.root, "link"));
    for (const path of ["../outside/secret.txt", "link/secret.txt", "link", "/etc/passwd"]) {
      const exists = await folders.workspace.has(path).catch((error: unknown) => {
        assert.ok(error instanceof StepError);
        return false;
      });
      assert.equal(exists, false, path);
    }
  });

  test("to list or search a folder outside", async () => {
    await using folders = await twoFolders();
    await symlink(folders.outside, join(folders.root, "link"));
    await refuses(folders.workspace.list("link"));
    await refuses(folders.workspace.list(".."));
    assert.deepEqual(await folders.workspace.list(), ["inside.txt"]);
    assert.deepEqual(await folders.workspace.search(["secret"]), []);
  });

  test("a file that is too large or not text, and a text that is too large", async () => {
    await using folders = await twoFolders();
    await writeFile(join(folders.root, "large.txt"), "x".repeat(5 * 1024 * 1024));
    await writeFile(join(folders.root, "binary"), Buffer.from([1, 0, 2]));
    await refuses(folders.workspace.read("large.txt"));
    await refuses(folders.workspace.read("binary"));
    await refuses(folders.workspace.write("new.txt", "x".repeat(5 * 1024 * 1024)));
    await assert.rejects(access(join(folders.root, "new.txt")));
  });
});

describe("the workspace", () => {
  test("reads and writes by either name, makes folders, and leaves no draft behind", async () => {
    await using folders = await twoFolders();
    const { workspace, root } = folders;
    await workspace.write("/workspace/contexts/first one.md", "one");
    await workspace.write("contexts/../contexts/дом 🔑.md", "two");
    await workspace.write("contexts/first one.md", "one again");
    assert.equal(await workspace.read("contexts/first one.md"), "one again");
    assert.equal(await workspace.read("/workspace/contexts/дом 🔑.md"), "two");
    assert.deepEqual(await workspace.list("contexts"), ["contexts/first one.md", "contexts/дом 🔑.md"].sort());
    assert.deepEqual((await readdir(join(root, "contexts"))).length, 2);
    assert.equal(await workspace.has("contexts/first one.md"), true);
    assert.equal(await workspace.has("contexts/other.md"), false);
  });

  test("follows a link that stays inside", async () => {
    await using folders = await twoFolders();
    await symlink("inside.txt", join(folders.root, "alias.txt"));
    assert.equal(await folders.workspace.read("alias.txt"), "plain words");
  });

  test("works where the workspace's own folder is a link, or is not there yet", async () => {
    await using folders = await twoFolders();
    await symlink(folders.root, join(folders.path, "alias"));
    const linked = new Workspace(join(folders.path, "alias"));
    assert.equal(await linked.read("inside.txt"), "plain words");
    await linked.write("more.txt", "more");
    const absent = new Workspace(join(folders.path, "later"));
    assert.deepEqual(await absent.list(), []);
    await refuses(absent.read("a.txt"));
    await absent.write("a.txt", "a");
    assert.deepEqual(await absent.list(), ["a.txt"]);
  });

  test("finds lines by any of the words, letter case aside", async () => {
    await using folders = await twoFolders();
    await folders.workspace.write("a.txt", "First line\n  The OTTER sleeps.\nLast");
    assert.deepEqual(await folders.workspace.search(["otter", "nothing"]), [
      { path: "a.txt", line: 2, text: "The OTTER sleeps." },
    ]);
    assert.deepEqual(await folders.workspace.search([]), []);
  });
});

/** A refusal is an error of the step with a reason, and is not retryable. */
async function refuses(promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof StepError, String(error));
    assert.equal(error.retryable, false);
    assert.match(error.code, /^file_(?:refused|missing)$/);
    return true;
  });
}

async function listing(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .map((entry) => `${join(entry.parentPath, entry.name)} ${entry.isSymbolicLink()} ${entry.isFile()}`)
    .sort();
}
