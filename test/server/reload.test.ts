import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { MonikerFiles, monikerFile } from "../monikers/moniker-files.ts";
import { Api, problemOf, read } from "./api.ts";
import { everstep } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

const reportShape = z.strictObject({
  monikers: z.array(z.strictObject({ name: z.string(), version: z.string(), change: z.string() })),
  failed: z.array(z.strictObject({ file: z.string(), moniker: z.string().nullable(), error: z.string() })),
});
const versionsShape = z.object({
  looked_at: z.int(),
  total: z.int(),
  versions: z.array(z.object({ version: z.string(), is_current: z.boolean(), sessions: z.int() })),
});
const monikersShape = z.object({ monikers: z.array(z.object({ name: z.string(), version: z.string() })) });

const teller = (word: string) => ({
  "teller.ts": monikerFile("teller", "word", { kind: "reactive", head: 'import { word } from "./lib/word.ts";' }),
  "lib/word.ts": `export const word = ${JSON.stringify(word)};\n`,
});

/** A server with a moniker that writes a word, and a session of it. */
async function tellingServer(...args: string[]) {
  const files = await MonikerFiles.with(teller("old"));
  const server = await ServerProcess.start({ EVERSTEP_MONIKERS: files.folder }, args);
  const api = new Api(server.url);
  const { session_id } = await api.create("teller");
  const ask = async (): Promise<string | null> => {
    const { iteration } = await api.session(session_id);
    await api.post(`/api/sessions/${session_id}/interrupt`, { guidance: "say it" });
    await eventually("the answer", async () => (await api.session(session_id)).iteration > iteration);
    return (await api.steps(session_id)).at(-1)?.text ?? null;
  };
  const version = async (): Promise<string | undefined> =>
    read(await api.get("/api/monikers"), 200, monikersShape).monikers.find(({ name }) => name === "teller")?.version;
  return {
    files,
    server,
    api,
    ask,
    version,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
    },
  };
}

describe("changed monikers are loaded while the server runs", () => {
  test("by POST /api/monikers/reload, which tells what changed and what could not be loaded", TIMEOUT, async () => {
    await using world = await tellingServer();
    const { files, api, ask, version } = world;
    const first = await version();
    assert.equal(await ask(), "old");
    await files.write(teller("new"));
    const report = read(await api.send("POST", "/api/monikers/reload"), 200, reportShape);
    const second = await version();
    assert.notEqual(second, first);
    assert.deepEqual(report, { monikers: [{ name: "teller", version: second, change: "changed" }], failed: [] });
    assert.equal(await ask(), "new");
    await files.write({ "lib/word.ts": "export const word = ;" });
    const { failed } = read(await api.post("/api/monikers/reload"), 200, reportShape);
    assert.deepEqual(
      failed.map(({ moniker }) => moniker),
      ["teller"],
    );
    assert.match(failed[0]?.error ?? "", /^moniker_invalid: .*teller\.ts/);
    assert.equal(await ask(), "new", "the last good code goes on");
    assert.match(world.server.stderr, /could not be loaded/);
  });

  test("and GET /api/monikers/{name}/versions tells which of them sessions used", TIMEOUT, async () => {
    await using world = await tellingServer();
    const { files, api, ask, version } = world;
    const usedVersions = async () => {
      const { versions, ...counted } = read(await api.get("/api/monikers/teller/versions"), 200, versionsShape);
      return {
        ...counted,
        versions: versions.map((used) => [used.version, used.is_current, used.sessions]),
      };
    };
    const first = await version();
    assert.deepEqual(await usedVersions(), { looked_at: 1, total: 1, versions: [[first, true, 0]] });
    await ask();
    await files.write(teller("new"));
    await api.post("/api/monikers/reload");
    await ask();
    const second = await version();
    assert.deepEqual(await usedVersions(), {
      looked_at: 1,
      total: 1,
      versions: [
        [second, true, 1],
        [first, false, 1],
      ],
    });
    problemOf(await api.get("/api/monikers/absent/versions"), 404);
  });

  test("by everstep reload, whose exit code tells of files that could not be loaded", TIMEOUT, async () => {
    await using world = await tellingServer();
    await world.files.write(teller("new"));
    const loaded = await everstep(["reload", "--url", world.server.url]);
    assert.deepEqual([loaded.code, loaded.stderr], [0, ""]);
    assert.match(loaded.stdout, /teller +[0-9a-f]{12} +changed/);
    assert.equal(await world.ask(), "new");
    await world.files.write({ "lib/word.ts": "export const word = ;" });
    const broken = await everstep(["reload", "--url", world.server.url]);
    assert.equal(broken.code, 1);
    assert.match(broken.stderr, /moniker_invalid: .*teller\.ts.*teller keeps its last good version/s);
  });

  for (const args of [[], ["--supervise"]])
    test(`by SIGHUP${args.map((flag) => `, with ${flag}`).join("")}`, TIMEOUT, async () => {
      await using world = await tellingServer(...args);
      await world.files.write(teller("new"));
      process.kill(world.server.pid, "SIGHUP");
      await eventually("the line in the log", async () => world.server.stderr.includes("a moniker was changed"));
      assert.equal(await world.ask(), "new");
      assert.equal((await world.server.stop()).code, 0);
    });

  for (const args of [["--watch"], ["--supervise", "--watch"]])
    test(`by serve ${args.join(" ")}, once a change is there`, TIMEOUT, async () => {
      await using world = await tellingServer(...args);
      for (const word of ["new", "newer"]) {
        await world.files.write(teller(word));
        await eventually(`the word ${word}`, async () => (await world.ask()) === word);
      }
      await world.files.write({ "added.ts": monikerFile("added", "1") });
      await eventually("the new moniker", async () => (await world.api.get("/api/monikers")).text.includes('"added"'));
    });

  test("--watch without a folder of monikers is refused", TIMEOUT, async () => {
    await using folder = await MonikerFiles.with({});
    const { code, stderr } = await everstep(["serve", "--watch"], { EVERSTEP_PORT: "0" }, folder.folder);
    assert.deepEqual([code, stderr.split("\n")[0]?.split(":")[0]], [1, "config_invalid"]);
  });
});
