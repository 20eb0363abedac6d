import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { REPOSITORY } from "./repository-files.ts";

const read = (path: string): Promise<string> => readFile(join(REPOSITORY, path), "utf8");
const matches = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map((match) => match[1] as string);

describe(".env.example", () => {
  test("has every variable that the program reads, and no other", async () => {
    const listed = matches(await read(".env.example"), /^([A-Z_]+)=/gm);
    assert.deepEqual(listed, [...new Set(listed)], "each once");
    const configs = await Promise.all(["src/main/config.ts", "src/surfaces/matrix/config.ts"].map(read));
    const read_by_program = matches(configs.join("\n"), /^ {2}([A-Z][A-Z_]+): /gm);
    assert.ok(read_by_program.length > 20, "the configuration was not found");
    const composed = matches(await read("compose.full.yaml"), /\$\{([A-Z_]+)/g);
    assert.deepEqual(listed.toSorted(), [...new Set([...read_by_program, ...composed])].toSorted());
  });

  test("can be used as it is: what it sets is what holds without it", async () => {
    const { readConfig } = await import("../src/main/config.ts");
    const lines = matches(await read(".env.example"), /^([A-Z_]+=.*)$/gm);
    const settings = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]));
    assert.deepEqual(readConfig(settings), readConfig({}));
  });
});
