import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { BUILT_IN, loadCatalog } from "../../src/monikers/catalog.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { rejectsWith } from "../store/store-folder.ts";
import { embeddedHome } from "./embedded-home.ts";
import { World } from "./runtime-fixture.ts";

// The folder is outside the package, so its files import the package's zod by its path.
const ZOD = `import { z } from ${JSON.stringify(import.meta.resolve("zod"))};\n`;

const moniker = (name: string, more = ""): string => `${ZOD}
export default {
  name: ${JSON.stringify(name)},
  kind: "finite",
  description: "Says a word.",
  params: z.object({ word: z.string().default("hello") }),
  step: ({ step, state }, { params }) => ({
    step, next_step: "1", state, text: params.word, done: true,
  }),
  ${more}
};
`;

const BROKEN: [string, string, RegExp][] = [
  ["cannot be parsed", "export default {", /one\.ts/],
  ["throws when it is loaded", 'throw new Error("no luck");', /no luck/],
  ["imports what is not there", 'import "./nowhere.ts";', /nowhere/],
  ["exports nothing", "export {};", /not a moniker/],
  ["exports a function", "export default () => 1;", /not a moniker/],
  ["has no step", moniker("one", "step: undefined,"), /step/],
  ["has a migrate that is no function", moniker("one", "migrate: {},"), /migrate/],
  ["has a kind that is not there", moniker("one", 'kind: "eternal",'), /kind/],
  ["has parameters that are no schema", moniker("one", "params: { word: 1 },"), /params/],
  ["has a name with spaces", moniker("my moniker"), /name/],
  ["has the name of a built-in one", moniker("joke"), /joke/],
];

describe("a folder of monikers", () => {
  test("adds its files to the built-in ones, and they run", async () => {
    await using folder = await scratchFolder();
    await writeFile(join(folder.path, "greet.ts"), `${moniker("greet")}export type Word = string;\n`);
    await writeFile(join(folder.path, "other.js"), moniker("other"));
    await writeFile(join(folder.path, "README.md"), "Not a moniker.");
    const catalog = await loadCatalog(folder.path);
    assert.deepEqual([...catalog.keys()], [...BUILT_IN.map(({ name }) => name), "greet", "other"]);
    await using world = await World.open(embeddedHome);
    for (const [name, own] of catalog) world.catalog.set(name, own);
    const session_id = await world.create("greet");
    assert.equal((await world.untilStatus(session_id, "done")).result, "hello");
    const other = await world.create("other", { params: { word: "hi" } });
    assert.equal((await world.untilStatus(other, "done")).result, "hi");
  });

  test("that is empty adds none", async () => {
    await using folder = await scratchFolder();
    assert.deepEqual(
      [...(await loadCatalog(folder.path)).keys()],
      BUILT_IN.map(({ name }) => name),
    );
  });

  test("that is not there is refused", async () => {
    await using folder = await scratchFolder();
    const error = await rejectsWith(loadCatalog(join(folder.path, "nowhere")), "config_invalid");
    assert.match(error.message, /nowhere/);
  });

  for (const [what, text, reason] of BROKEN) {
    test(`with a file that ${what} is refused, and the error names the file`, async () => {
      await using folder = await scratchFolder();
      await writeFile(join(folder.path, "one.ts"), text);
      const error = await rejectsWith(loadCatalog(folder.path), "moniker_invalid");
      assert.match(error.message, /one\.ts/);
      assert.match(error.message, reason);
    });
  }

  test("with two files of one name is refused", async () => {
    await using folder = await scratchFolder();
    await writeFile(join(folder.path, "a.ts"), moniker("twin"));
    await writeFile(join(folder.path, "b.ts"), moniker("twin"));
    const error = await rejectsWith(loadCatalog(folder.path), "moniker_invalid");
    assert.match(error.message, /b\.ts.*twin/);
  });
});
