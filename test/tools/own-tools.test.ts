import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { OwnTools } from "../../src/tools/own/own-tools.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { type CallOptions, errorOf, textOf, toolsOf } from "./calls.ts";

const header = 'import { defineTool, z } from "everstep/moniker";\n';
const weather = (answer: string) => `${header}
export default defineTool({
  description: "Tells the weather.",
  input: z.object({ place: z.string(), days: z.number().default(1) }),
  read_only: true,
  run: async ({ place, days }) => \`\${place}, \${days}: ${answer}\`,
});
export const forget = defineTool({
  description: "Forgets a place.",
  input: z.object({ place: z.string() }),
  destructive: true,
  async run({ place }, { workspace, ids, signal }) {
    signal.throwIfAborted();
    if (place === "nowhere") throw new Error("there is no such place");
    if (place === "forever") return new Promise(() => {});
    await workspace.write("forgotten.md", place);
    return { place, session_id: ids.session_id };
  },
});
export const helper = () => 1;
`;

async function opened(files: Record<string, string>) {
  const folder = await scratchFolder();
  const tools = join(folder.path, "tools");
  await mkdir(tools);
  for (const [name, text] of Object.entries(files)) await writeFile(join(tools, name), text);
  const own = await OwnTools.open(tools);
  const registry = new ToolRegistry({ workspace: join(folder.path, "workspace"), servers: [own.server] });
  return { own, tools, use: (options: CallOptions = {}) => toolsOf(registry, options), folder };
}

describe("users' own tools", () => {
  test("are every export that is a tool, named after the export or the file, and called with validated arguments", async () => {
    const { use } = await opened({ "weather.ts": weather("sunny"), "weather.test.ts": "throw new Error();" });
    const offered = await use().list();
    assert.deepEqual(
      offered.map(({ name, read_only, idempotent, destructive, policy }) => [
        name,
        read_only,
        idempotent,
        destructive,
        policy,
      ]),
      [
        ["own/forget", false, false, true, "ask"],
        ["own/weather", true, true, false, "run"],
      ],
    );
    assert.deepEqual(offered[1]?.input_schema["required"], ["place"]);
    assert.equal(await textOf(use(), "own/weather", { place: "Oslo" }), "Oslo, 1: sunny");
    assert.match(await errorOf(use(), "own/weather", { place: 1 }), /do not fit own\/weather:\n- place: /);
    assert.equal(
      await textOf(use(), "own/forget", { place: "Oslo" }),
      '{\n "place": "Oslo",\n "session_id": "session"\n}',
    );
    assert.equal(await use().workspace.read("forgotten.md"), "Oslo");
  });

  test("that throw give the model the message, and those that ignore an abort are abandoned", async () => {
    const { use } = await opened({ "weather.ts": weather("sunny") });
    assert.equal(await errorOf(use(), "own/forget", { place: "nowhere" }), "there is no such place");
    const controller = new AbortController();
    const call = use({ signal: controller.signal }).call("own/forget", { place: "forever" });
    const reason = new Error("enough");
    setImmediate(() => controller.abort(reason));
    await assert.rejects(call, reason);
    assert.match(await errorOf(use({ is_rerun: true }), "own/forget", { place: "Oslo" }), /this is a rerun/);
  });

  test("are loaded anew; a file that cannot be used leaves its tools as they were", async () => {
    const { own, tools, use } = await opened({ "weather.ts": weather("sunny") });
    await writeFile(join(tools, "weather.ts"), weather("rainy"));
    assert.deepEqual(await own.reload(), []);
    assert.equal(await textOf(use(), "own/weather", { place: "Oslo" }), "Oslo, 1: rainy");
    await writeFile(join(tools, "weather.ts"), "export const x = ;");
    const [failure] = await own.reload();
    assert.match(failure?.error.message ?? "", /^tool_invalid: .*weather\.ts/);
    assert.equal(await textOf(use(), "own/weather", { place: "Oslo" }), "Oslo, 1: rainy");
    await rm(join(tools, "weather.ts"));
    assert.deepEqual(await own.reload(), []);
    assert.deepEqual(await use().list(), []);
  });

  const tool = (fields: string) =>
    `${header}export const a = { description: "x", input: z.object({}), run: () => "", ${fields} };`;
  const WRONG: [name: string, files: Record<string, string>, message: RegExp][] = [
    ["no tool", { "a.ts": "export const a = 1;" }, /a\.ts: it exports no tool/],
    ["one without a description", { "a.ts": tool('description: ""') }, /the export a is not a tool: description/],
    ["an input that is no schema", { "a.ts": tool("input: {}") }, /input must be a zod schema/],
    ["a name that is none", { "a.ts": tool('name: "a/b"') }, /"a\/b" is not a valid name/],
    ["two of one name", { "a.ts": tool(""), "b.ts": tool("") }, /b\.ts: another tool is already named a/],
    ["a fault", { "a.ts": 'throw new Error("broken");' }, /a\.ts: broken/],
  ];
  for (const [name, files, message] of WRONG)
    test(`a file with ${name} is refused at the start`, async () => {
      await assert.rejects(opened(files), (error: Error & { code?: string }) => {
        assert.equal(error.code, "tool_invalid");
        return message.test(error.message);
      });
    });

  test("in a folder that nobody named are only those that import everstep/moniker", async () => {
    await using folder = await scratchFolder();
    await mkdir(join(folder.path, "tools"));
    await writeFile(join(folder.path, "tools/release.js"), 'throw new Error("a script of somebody else was run");');
    await writeFile(join(folder.path, "tools/weather.ts"), weather("sunny"));
    const before = process.cwd();
    process.chdir(folder.path);
    try {
      const { server } = await OwnTools.open(undefined);
      assert.deepEqual((await server.tools()).map(({ name }) => name).sort(), ["forget", "weather"]);
    } finally {
      process.chdir(before);
    }
  });
});
