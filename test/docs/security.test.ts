import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { REPOSITORY } from "../repository-files.ts";

const read = (path: string): Promise<string> => readFile(join(REPOSITORY, path), "utf8");

/** Settings that limit something, recognized by name and value. */
const isLimit = (name: string, value: string): boolean =>
  /^\d+$/.test(value) && !["EVERSTEP_PORT", "EVERSTEP_START_HELD", "EVERSTEP_SUPERVISE"].includes(name);

describe("docs/security.md", () => {
  test("lists every limit that can be set, with the default that holds", async () => {
    const settings = [...(await read(".env.example")).matchAll(/^([A-Z_]+)=(.*)$/gm)].map(
      ([, name = "", value = ""]) => [name, value] as const,
    );
    const expected = settings.filter(([name, value]) => isLimit(name, value));
    assert.ok(expected.length > 4, "no limits were found");
    const rows = [...(await read("docs/security.md")).matchAll(/^\| .* \| ([\d,]+) \| `([A-Z_]+)` \|$/gm)];
    const listed = rows.map(([, value = "", name = ""]) => [name, value.replaceAll(",", "")] as const);
    assert.deepEqual(Object.fromEntries(listed), Object.fromEntries(expected));
  });

  test("and the policy are found from the front page", async () => {
    const page = await read("README.md");
    for (const target of ["docs/security.md", "SECURITY.md"]) assert.ok(page.includes(`(${target})`), target);
  });
});
