import assert from "node:assert/strict";
import { chmod, mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { openStore } from "../../src/store/open-store.ts";
import { Database } from "../../src/surfaces/matrix/state/database.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { everstep } from "./command.ts";
import { ServerProcess, TIMEOUT } from "./server-fixture.ts";

const SECRET = "hunter2";
/** All are unusable, and each has the secret where a parser may not expect one. */
const STORES = [
  `postgres://u:pa/${SECRET}@127.0.0.1:1/db`,
  `postgres://u:12/${SECRET}@127.0.0.1:1/db`,
  `postgres://u:pa#${SECRET}@127.0.0.1:1/db`,
  `postgres://u:pa?${SECRET}@127.0.0.1:1/db`,
  `postgres://u:100%${SECRET}@127.0.0.1:1/db`,
  `postgres://u:a b ${SECRET}@127.0.0.1:1/db`,
  `postgres://u:a@${SECRET},b@127.0.0.1:1/db`,
  `postgres://u:${SECRET}@127.0.0.1:notaport/db`,
  `postgres://u:${SECRET}@[::1/db`,
  `postgres:u:${SECRET}@127.0.0.1/db`,
  `postgres:u:a b ${SECRET}@127.0.0.1/db`,
  `postgre://u:${SECRET}@127.0.0.1/db`,
  `u:${SECRET}@127.0.0.1/db`,
];

describe("a store's URL that cannot be used", () => {
  test("is refused without its password", TIMEOUT, async () => {
    for (const url of STORES)
      await assert.rejects(openStore(url), (error: Error) => {
        assert.match(error.message, /^config_invalid: [^\n]*EVERSTEP_STORE[^\n]*; [^\n]*$/, url);
        assert.ok(!inspect(error).includes(SECRET), inspect(error));
        return true;
      });
  });

  for (const command of [["serve"], ["worker"], ["prune", "--older-than", "1d"]])
    test(`is refused by everstep ${command[0]} in one line without its password`, TIMEOUT, async () => {
      for (const EVERSTEP_STORE of [STORES[0] ?? "", ...STORES.slice(-2)]) {
        const { code, stdout, stderr } = await everstep(command, { EVERSTEP_STORE, EVERSTEP_PORT: "0" });
        assert.equal(code, 1, EVERSTEP_STORE);
        assert.match(stderr, /^config_invalid: [^\n]*EVERSTEP_STORE[^\n]*; [^\n]*\n$/, `${EVERSTEP_STORE}: ${stderr}`);
        assert.ok(!(stdout + stderr).includes(SECRET), stderr);
      }
    });
});

describe("a URL with a password", () => {
  test("is not told by a store that cannot be reached", TIMEOUT, async () => {
    const store = `postgres://u:${SECRET}@127.0.0.1:1/db`;
    const { code, stdout, stderr } = await everstep(["prune", "--older-than", "1d", "--store", store]);
    assert.equal(code, 1);
    assert.match(stderr, /^store_unavailable: /);
    assert.ok(!(stdout + stderr).includes(SECRET), stderr);
  });

  test("is not told by commands that cannot reach their server", TIMEOUT, async () => {
    const url = `http://u:${SECRET}@127.0.0.1:1`;
    const calls = [
      ["ps", "--url", url],
      ["chat", "--url", url],
      ["ps", "--help"],
      ["ps", "--nonsense", url],
      ["ps", url],
    ];
    for (const call of calls) {
      const { stdout, stderr } = await everstep(call, { EVERSTEP_URL: url });
      assert.ok(!(stdout + stderr).includes(SECRET), `${call.join(" ")}: ${stdout}${stderr}`);
    }
  });

  test("is not told where a model behind it fails", TIMEOUT, async () => {
    await using server = await ServerProcess.start({
      EVERSTEP_MODEL: "openai/none",
      OPENAI_BASE_URL: `http://u:${SECRET}@127.0.0.1:1/v1`,
      HTTP_PROXY: `http://u:${SECRET}@127.0.0.1:1`,
    });
    const body = {
      agent_id: "a",
      moniker: "joke",
      params: { subject: "tea" },
      options: { retry: { max_attempts: 1, outage_s: 0 } },
    };
    const headers = { "content-type": "application/json" };
    await fetch(`${server.url}/api/agents`, { method: "POST", headers, body: JSON.stringify(body) });
    let session = "";
    while (!session.includes('"status":"error"')) session = await (await fetch(`${server.url}/api/agents/a`)).text();
    const steps = await (await fetch(`${server.url}/api/agent-steps?agent_id=a`)).text();
    assert.match(session, /"last_error":"provider_down: /);
    assert.ok(!(session + steps + server.stdout + server.stderr).includes(SECRET), session + server.stderr);
  });
});

describe("the data folder", () => {
  const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

  test("is accessible to its owner only, even if it was open before", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const data = join(server.folder, "data");
    assert.equal(await modeOf(data), 0o700);
    await server.stop();
    await chmod(data, 0o755);
    await server.start();
    assert.equal(await modeOf(data), 0o700);
    assert.doesNotMatch(server.stderr, /EVERSTEP_OPEN_FOLDER/);
  });

  test("of the Matrix bot is so too", async () => {
    await using scratch = await scratchFolder();
    const state = join(scratch.path, "state");
    Database.open(state)[Symbol.dispose]();
    assert.equal(await modeOf(state), 0o700);
    await chmod(state, 0o755);
    Database.open(state)[Symbol.dispose]();
    assert.equal(await modeOf(state), 0o700);
  });

  test("that contains files of others is left as it is, with a warning", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const data = join(scratch.path, "shared");
    await mkdir(data);
    await chmod(data, 0o755);
    await writeFile(join(data, "notes.txt"), "mine");
    const prune = ["prune", "--older-than", "1d", "--store", `lancedb:${data}`];
    const { stderr } = await everstep(prune, {}, scratch.path);
    assert.match(stderr, /EVERSTEP_OPEN_FOLDER.*other users of this machine can read .*; close it with chmod 700/);
  });
});
