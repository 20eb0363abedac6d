import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { REPOSITORY } from "../repository-files.ts";
import { Api } from "../server/api.ts";
import { sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { scratchFolder } from "../store/scratch-folder.ts";

const BUILT = join(REPOSITORY, "console/dist");
const ENTRY_BYTES = 150 * 1024;
const ALL_BYTES = 300 * 1024;

const gzipped = async (path: string): Promise<number> => gzipSync(await readFile(join(BUILT, path))).length;
const sum = (sizes: number[]): number => sizes.reduce((total, size) => total + size, 0);

describe("the built console", () => {
  const server = sharedServer();

  test(`is at most ${ENTRY_BYTES / 1024} KB to begin with and ${ALL_BYTES / 1024} KB in all, compressed`, async () => {
    const page = await readFile(join(BUILT, "index.html"), "utf8");
    const first = [...page.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, path]) => path ?? "");
    assert.ok(first.some((path) => path.endsWith(".js")) && first.some((path) => path.endsWith(".css")), page);
    const entry = sum(await Promise.all(["index.html", ...first].map(gzipped)));
    assert.ok(entry <= ENTRY_BYTES, `the entry has ${entry} bytes`);
    const files = (await readdir(join(BUILT, "assets"))).map((name) => `assets/${name}`);
    const all = sum(await Promise.all(["index.html", ...files].map(gzipped)));
    assert.ok(all <= ALL_BYTES, `everything has ${all} bytes`);
  });

  test(
    "is served with its types, compressed, and kept by browsers as long as it does not change",
    TIMEOUT,
    async () => {
      const api = new Api(server().url);
      const index = await api.send("GET", "/");
      assert.doesNotMatch(index.text, /<script(?![^>]*\bsrc=)/, "no script stands in the page itself");
      assert.equal(index.headers.get("cache-control"), "no-cache");
      const assets = [...index.text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? "");
      for (const path of assets) {
        const answer = await api.send("GET", path);
        assert.equal(answer.status, 200);
        assert.match(answer.headers.get("content-type") ?? "", /^(?:text\/(?:javascript|css)|image\/svg)/);
        assert.match(answer.headers.get("cache-control") ?? "", /immutable/);
        assert.equal(answer.headers.get("content-encoding"), "gzip");
        const again = await api.send("GET", path, undefined, { "if-none-match": answer.headers.get("etag") ?? "" });
        assert.equal(again.status, 304);
      }
      const plain = await api.send("GET", assets[0] ?? "", undefined, { "accept-encoding": "identity" });
      assert.equal(plain.headers.get("content-encoding"), null);
      assert.ok(plain.text.length > 0);
    },
  );

  test("answers at every address of its own, and leads nowhere else", TIMEOUT, async () => {
    const api = new Api(server().url);
    const index = (await api.get("/")).text;
    for (const path of [
      "/sessions/any%2Fid",
      "/conversations",
      "/conversations/a?message=b",
      "/inbox",
      "/agents",
      "/start",
      "/search?q=x",
      "/system",
      "/webhooks",
      "/compare/a/b",
    ])
      assert.equal((await api.get(path)).text, index, path);
    for (const path of [
      "/assets/..%2Findex.html",
      "/assets/nothing.js",
      "/assets/%2e%2e%2f%2e%2e%2fpackage.json",
      "/elsewhere",
    ])
      assert.equal((await api.get(path)).status, 404, path);
  });

  test("is built by npm ci and by npm start where it is missing, and not again", TIMEOUT, async () => {
    const { scripts } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    for (const name of ["dependencies", "prestart", "pretest"])
      assert.equal(scripts[name], "node console/build.js", name);
    await using scratch = await scratchFolder();
    const clone = join(scratch.path, "clone");
    await mkdir(clone);
    await cp(join(REPOSITORY, "console"), join(clone, "console"), {
      recursive: true,
      filter: (path) => !path.endsWith("dist"),
    });
    await cp(join(REPOSITORY, "src"), join(clone, "src"), { recursive: true });
    for (const name of ["package.json", "tsconfig.json"]) await cp(join(REPOSITORY, name), join(clone, name));
    await symlink(join(REPOSITORY, "node_modules"), join(clone, "node_modules"));
    await build(clone);
    const made = await stat(join(clone, "console/dist/index.html"));
    await build(clone);
    assert.equal((await stat(join(clone, "console/dist/index.html"))).mtimeMs, made.mtimeMs);
  });
});

const build = (folder: string) => promisify(execFile)(process.execPath, ["console/build.js"], { cwd: folder });
