import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { promisify } from "node:util";
import { REPOSITORY } from "../repository-files.ts";
import { JSON_BODY } from "../server/api.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";

const run = promisify(execFile);

describe("README.md", () => {
  let readme: string;
  before(async () => {
    readme = await readFile(join(REPOSITORY, "README.md"), "utf8");
  });

  test("links to files and pictures that are there", async () => {
    const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path]) => path as string);
    assert.ok(links.length > 10);
    for (const link of links) await access(join(REPOSITORY, link));
  });

  test("shows the moniker of docs/writing-a-moniker.md, which a test runs", async () => {
    const [block] = readme.match(/```ts\n[^]*?```/) ?? assert.fail("no moniker");
    assert.ok((await readFile(join(REPOSITORY, "docs/writing-a-moniker.md"), "utf8")).includes(block));
  });

  test("has the figures of docs/compared.md, which the bench measured", async () => {
    const compared = await readFile(join(REPOSITORY, "docs/compared.md"), "utf8");
    const rows = readme
      .slice(readme.indexOf("| *measured:*"), readme.indexOf("Measured side by side"))
      .split("\n")
      .slice(1);
    const figures = rows.flatMap(
      (row) =>
        row
          .split("|")
          .slice(2)
          .join("|")
          .match(/\d[\d.,]*/g) ?? [],
    );
    assert.equal(figures.length, 8 * 6);
    for (const figure of figures) assert.match(compared, new RegExp(`[|(–] ?${figure}\\b`), figure);
  });

  test("names commands that the command line has", async () => {
    const { stdout } = await run(process.execPath, [join(REPOSITORY, "bin/everstep.js"), "--help"]);
    const named = new Set([...readme.matchAll(/npx everstep (\w+)/g)].map(([, name]) => name as string));
    assert.ok(named.size > 8);
    for (const name of named) assert.match(stdout, new RegExp(`^  ${name}\\b`, "m"));
  });

  test("names settings that .env.example explains", async () => {
    const settings = await readFile(join(REPOSITORY, ".env.example"), "utf8");
    for (const [name] of readme.matchAll(/\b(?:EVERSTEP|MATRIX)_[A-Z_]+/g))
      assert.ok(settings.includes(`${name}=`), name);
  });

  test("shows requests that a new server takes", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const lines = [...readme.matchAll(/^curl -s '?(http:\/\/127\.0\.0\.1:4180)([^' ]*)'?(?:.* -d '(.*)')?$/gm)];
    assert.equal(lines.length, 3);
    for (const [line, , path, body] of lines) {
      const request = body === undefined ? {} : { method: "POST", headers: JSON_BODY, body };
      const answer = await fetch(`${server.url}${path}`, request);
      assert.equal(answer.status, body === undefined ? 200 : 202, line);
    }
  });
});
