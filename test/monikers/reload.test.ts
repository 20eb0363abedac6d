import assert from "node:assert/strict";
import { cp, mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { BUILT_IN, MonikerLoader } from "../../src/monikers/catalog.ts";
import type { StepContext } from "../../src/monikers/moniker.ts";
import { MonikerFiles, monikerFile } from "./moniker-files.ts";

const WHOLE: Record<string, string> = {
  "teller.ts": monikerFile("teller", "`${word} ${prompt} ${common.word} ${json.word}`", {
    head: `import { readFileSync } from "node:fs";
import { word } from "./lib/word.ts";
import common from "./lib/common.cjs";
import json from "./lib/words.json" with { type: "json" };
const prompt = readFileSync(new URL("./prompts/first.md", import.meta.url), "utf8");
const others = "./templates/";`,
  }),
  "lib/word.ts": 'import { deep } from "./deep.ts";\nexport const word: string = `word ${deep}`;\n',
  "lib/deep.ts": 'export const deep = "deep";\n',
  "lib/late.ts": 'export const late = "late";\n',
  "lib/common.cjs": 'module.exports = { word: "common" };\n',
  "lib/words.json": '{ "word": "json" }',
  "prompts/first.md": "prompt",
  "templates/inner/second.txt": "template",
  "unrelated/third.md": "nobody names it",
  "other.ts": monikerFile("other", '(await import("./lib/late.ts")).late'),
};

async function opened(files = WHOLE) {
  const folder = await MonikerFiles.with(files);
  const loader = await MonikerLoader.open(folder.folder);
  const versionOf = (name: string): string => loader.catalog.get(name)?.version ?? assert.fail(`no ${name}`);
  return { folder, loader, versionOf };
}

async function said(loader: MonikerLoader, name: string): Promise<string | undefined> {
  const moniker = loader.catalog.get(name) ?? assert.fail(`no ${name}`);
  return (await moniker.step({ step: "0", state: {} }, {} as StepContext)).text;
}

describe("a moniker's version", () => {
  const CHANGES: [string, string, string][] = [
    ["its file", "teller.ts", `${WHOLE["teller.ts"]}// changed\n`],
    ["what it imports", "lib/word.ts", 'import { deep } from "./deep.ts";\nexport const word = `other ${deep}`;\n'],
    ["what that imports", "lib/deep.ts", 'export const deep = "deeper";\n'],
    ["a CommonJS module", "lib/common.cjs", 'module.exports = { word: "rare" };\n'],
    ["JSON that it imports", "lib/words.json", '{ "word": "other" }'],
    ["a prompt that it names", "prompts/first.md", "another prompt"],
    ["a prompt in a folder that it names", "templates/inner/second.txt", "another template"],
    ["a prompt that is new in a folder that it names", "templates/new.txt", "a new template"],
  ];
  for (const [what, file, text] of CHANGES)
    test(`changes with ${what}, and what is loaded then is the new`, async () => {
      const { folder, loader, versionOf } = await opened();
      await using _ = folder;
      const [before, other, first] = [versionOf("teller"), versionOf("other"), await said(loader, "teller")];
      await folder.write({ [file]: text });
      const { monikers, failed } = await loader.reload();
      assert.deepEqual(failed, []);
      assert.notEqual(versionOf("teller"), before);
      assert.equal(versionOf("other"), other, "the other moniker has nothing to do with it");
      assert.deepEqual(monikers, [
        { name: "other", version: other, change: "unchanged" },
        { name: "teller", version: versionOf("teller"), change: "changed" },
      ]);
      const isSaid = !file.startsWith("templates/") && file !== "teller.ts";
      assert.equal((await said(loader, "teller")) !== first, isSaid, "the text says whether the new one runs");
    });

  test("changes with what it imports only when it runs", async () => {
    const { folder, loader, versionOf } = await opened();
    await using _ = folder;
    const before = versionOf("other");
    await folder.write({ "lib/late.ts": 'export const late = "later";\n' });
    await loader.reload();
    assert.notEqual(versionOf("other"), before);
    assert.equal(await said(loader, "other"), "later");
  });

  test("does not change with files that it does not name, nor with packages", async () => {
    const { folder, loader, versionOf } = await opened();
    await using _ = folder;
    const before = [versionOf("teller"), versionOf("other")];
    await folder.write({ "unrelated/third.md": "still nobody", "node_modules/prompts/first.md": "a package's" });
    await loader.reload();
    assert.deepEqual([versionOf("teller"), versionOf("other")], before);
  });

  test("is the same wherever the folder is, and again what it was when a change is taken back", async () => {
    const { folder, loader, versionOf } = await opened();
    await using _ = folder;
    const before = versionOf("teller");
    await using copy = await MonikerFiles.with({});
    await cp(folder.folder, copy.folder, { recursive: true });
    assert.equal((await MonikerLoader.open(copy.folder)).catalog.get("teller")?.version, before);
    await folder.write({ "lib/deep.ts": 'export const deep = "x";\n' });
    await loader.reload();
    await folder.write({ "lib/deep.ts": WHOLE["lib/deep.ts"] as string });
    await loader.reload();
    assert.equal(versionOf("teller"), before);
    assert.match((await said(loader, "teller")) ?? "", /^word deep /);
  });

  test("is one for all built-in monikers", async () => {
    const { catalog } = await MonikerLoader.open(undefined);
    const versions = new Set(BUILT_IN.map(({ name }) => catalog.get(name)?.version));
    assert.equal(versions.size, 1);
    assert.match([...versions].join(), /^[0-9a-f]{12}$/);
  });
});

describe("a reload", () => {
  test("leaves a step that runs on its old code, also what that imports later", async () => {
    const { folder, loader } = await opened({
      "slow.ts": monikerFile("slow", 'await context.gate.then(() => import("./lib/late.ts")).then(({ late }) => late)'),
      "lib/late.ts": 'export const late = "old";\n',
    });
    await using _ = folder;
    const gate = Promise.withResolvers<void>();
    const context = { gate: gate.promise } as unknown as StepContext;
    const step = async () => (await loader.catalog.get("slow")?.step({ step: "0", state: {} }, context))?.text;
    const running = step();
    await folder.write({ "lib/late.ts": 'export const late = "new";\n' });
    await loader.reload();
    gate.resolve();
    assert.equal(await running, "old");
    assert.equal(await step(), "new");
  });

  test("follows links, as Node does: of the folder, of a file, and of what is behind one that is replaced", async () => {
    await using folder = await MonikerFiles.with({ "data/1/one.ts": "", "data/1/lib/word.ts": "" });
    const write = (at: string, word: string) =>
      folder.write({
        [`data/${at}/one.ts`]: monikerFile("one", "word", { head: 'import { word } from "./lib/word.ts";' }),
        [`data/${at}/lib/word.ts`]: `export const word = ${JSON.stringify(word)};\n`,
      });
    await write("1", "first");
    await symlink("1", join(folder.folder, "data/current"));
    await mkdir(join(folder.folder, "monikers"));
    await symlink("../data/current/one.ts", join(folder.folder, "monikers/one.ts"));
    await symlink("monikers", join(folder.folder, "linked"));
    const loader = await MonikerLoader.open(join(folder.folder, "linked"));
    assert.equal(await said(loader, "one"), "first");
    await write("1", "second");
    assert.equal((await loader.reload()).monikers[0]?.change, "changed");
    assert.equal(await said(loader, "one"), "second");
    await write("2", "third");
    await rm(join(folder.folder, "data/current"));
    await symlink("2", join(folder.folder, "data/current"));
    await loader.reload();
    assert.equal(await said(loader, "one"), "third");
  });

  test("does not load again what did not change", async () => {
    const loads = `const loads = ((globalThis as any).loads ??= []);\n`;
    const { folder, loader } = await opened({
      "one.ts": `${loads}${monikerFile("one", "shared", { head: 'import { shared } from "./lib/shared.ts";\nloads.push("one");' })}`,
      "two.ts": `${loads}${monikerFile("two", "shared", { head: 'import { shared } from "./lib/shared.ts";\nloads.push("two");' })}`,
      "lib/shared.ts": `${loads}loads.push("shared");\nexport const shared = 1;\n`,
    });
    await using _ = folder;
    const { loads: loaded } = globalThis as unknown as { loads: string[] };
    assert.deepEqual(loaded.splice(0).sort(), ["one", "shared", "two"]);
    await folder.write({
      "two.ts": monikerFile("two", "shared", { head: 'import { shared } from "./lib/shared.ts";' }),
    });
    await loader.reload();
    await loader.reload();
    assert.deepEqual(loaded, [], "one.ts and lib/shared.ts are as they were");
  });

  test("keeps a moniker whose file cannot be loaded, says why, and takes it once it can", async () => {
    const { folder, loader, versionOf } = await opened({ "one.ts": monikerFile("one", "'first'") });
    await using _ = folder;
    const before = versionOf("one");
    const BROKEN: [string, RegExp][] = [
      ["export default {", /one\.ts/],
      ['throw new Error("no luck");', /one\.ts.*no luck/],
      ['import "./nowhere.ts";', /one\.ts.*nowhere/],
      ["export default 1;", /one\.ts.*not a moniker/],
      [monikerFile("joke", "'stolen'"), /one\.ts.*joke/],
    ];
    for (const [text, reason] of BROKEN) {
      await folder.write({ "one.ts": text });
      const { monikers, failed } = await loader.reload();
      assert.deepEqual(monikers, [{ name: "one", version: before, change: "unchanged" }]);
      assert.deepEqual([failed.length, failed[0]?.moniker], [1, "one"]);
      assert.match(failed[0]?.error ?? "", reason);
      assert.equal(await said(loader, "one"), "first");
    }
    await folder.write({ "one.ts": monikerFile("one", "'second'") });
    assert.deepEqual((await loader.reload()).failed, []);
    assert.equal(await said(loader, "one"), "second");
  });

  test("tries again what failed for a reason outside the file", async () => {
    const flag = "(globalThis as any).isBroken";
    const { folder, loader } = await opened({ "one.ts": monikerFile("one", "'first'") });
    await using _ = folder;
    Object.assign(globalThis, { isBroken: true });
    await folder.write({
      "one.ts": monikerFile("one", "'second'", { head: `if (${flag}) throw new Error("not yet");` }),
    });
    assert.equal((await loader.reload()).failed.length, 1);
    Object.assign(globalThis, { isBroken: false });
    assert.deepEqual((await loader.reload()).failed, []);
    assert.equal(await said(loader, "one"), "second");
  });

  test("adds, removes and renames", async () => {
    const { folder, loader } = await opened({ "one.ts": monikerFile("one", "1"), "two.ts": monikerFile("two", "2") });
    await using _ = folder;
    await folder.remove("one.ts");
    await folder.write({ "two.ts": monikerFile("second", "2"), "three.ts": monikerFile("three", "3") });
    const { monikers } = await loader.reload();
    const changes = Object.fromEntries(monikers.map(({ name, change }) => [name, change]));
    assert.deepEqual(changes, { three: "added", second: "added", one: "removed", two: "removed" });
    const names = [...loader.catalog.keys()];
    assert.deepEqual(names, [...BUILT_IN.map(({ name }) => name), "three", "second"]);
  });

  test("of a folder that is gone keeps everything and says so", async () => {
    const { folder, loader } = await opened({ "one.ts": monikerFile("one", "1") });
    await using _ = folder;
    await folder.remove(".");
    const { monikers, failed } = await loader.reload();
    assert.deepEqual([monikers[0]?.change, failed.length], ["unchanged", 1]);
    assert.match(failed[0]?.error ?? "", /cannot be read/);
    assert.equal(await said(loader, "one"), "1");
  });
});
