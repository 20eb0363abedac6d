import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { checkFolder } from "../../src/store/embedded/check-folder.ts";
import { repetitions } from "../repetitions.ts";
import { everstep } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";
import { spawnEverstep } from "./spawn-everstep.ts";

const KILLS = repetitions("EVERSTEP_BACKUP_KILLS", { few: 2, many: 30 });

async function startCounting({ url }: ServerProcess): Promise<string> {
  const response = await fetch(`${url}/api/agents`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      agent_id: "busy",
      moniker: "count",
      params: { to: 1_000_000, delay_ms: 5, payload_bytes: 2000 },
    }),
  });
  assert.equal(response.status, 202);
  return ((await response.json()) as { session_id: string }).session_id;
}

const iterationOf = async ({ url }: ServerProcess, session_id: string): Promise<number> =>
  ((await (await fetch(`${url}/api/sessions/${session_id}`)).json()) as { iteration: number }).iteration;

const untilIteration = (server: ServerProcess, session_id: string, iteration: number) =>
  eventually(`step ${iteration}`, async () => (await iterationOf(server, session_id)) >= iteration);

const backUp = (server: ServerProcess, ...more: string[]) =>
  everstep(["backup", join(server.folder, "backups"), "--url", server.url, ...more]);

const storeAt = (folder: string) => ({ EVERSTEP_STORE: `lancedb:${folder}` });

describe("a backup of a server at work", () => {
  test(
    "is restored into an empty folder with all that was acknowledged before it, and agents go on there",
    TIMEOUT,
    async () => {
      await using server = await ServerProcess.start();
      const session_id = await startCounting(server);
      await untilIteration(server, session_id, 20);
      const acknowledged = await iterationOf(server, session_id);
      const made = await backUp(server);
      assert.equal(made.code, 0, made.stderr);
      const again = await backUp(server);
      assert.equal(again.code, 0, again.stderr);
      assert.ok(!(await readdir(join(server.folder, "data"))).some((name) => name.startsWith("backup-")));
      await server.kill();

      const folder = join(server.folder, "restored");
      const restored = await everstep(["restore", join(server.folder, "backups")], storeAt(folder));
      assert.equal(restored.code, 0, restored.stderr);
      assert.ok(Number(/(\d+) steps/.exec(restored.stdout)?.[1]) > acknowledged, restored.stdout);
      await using successor = await ServerProcess.start(storeAt(folder));
      await untilIteration(successor, session_id, acknowledged + 20);
    },
  );

  test("shares with the previous one what did not change, and as many stay as are to be kept", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const session_id = await startCounting(server);
    await untilIteration(server, session_id, 10);
    await server.stop();
    const folder = join(server.folder, "data");
    const into = join(server.folder, "backups");
    for (let round = 0; round < 3; round += 1) {
      const made = await everstep(["backup", into, "--keep", "2"], { ...storeAt(folder), EVERSTEP_PORT: "9" });
      assert.equal(made.code, 0, made.stderr);
    }
    const [first = "", second = ""] = await readdir(into);
    assert.equal((await readdir(into)).length, 2);
    const files = await readdir(join(into, first, "agent_steps.lance/data"));
    assert.ok(files.length > 0);
    for (const name of files) {
      const path = join("agent_steps.lance/data", name);
      assert.equal((await stat(join(into, first, path))).ino, (await stat(join(into, second, path))).ino);
    }
    await server.start();
  });

  test(
    `${KILLS} kills of the command and of the server leave earlier backups whole, and the next one comes through`,
    TIMEOUT,
    async () => {
      await using server = await ServerProcess.start();
      const session_id = await startCounting(server);
      await untilIteration(server, session_id, 10);
      const into = join(server.folder, "backups");
      assert.equal((await backUp(server)).code, 0);
      for (let kill = 0; kill < KILLS; kill += 1) {
        const command = spawnEverstep(["backup", into, "--url", server.url], {}, server.folder);
        const ended = once(command, "exit");
        await wait(300 + Math.random() * 500);
        if (kill % 2 === 0) command.kill("SIGKILL");
        else {
          await server.kill();
          await server.start();
        }
        await ended;
      }
      const last = await backUp(server);
      assert.equal(last.code, 0, last.stderr);
      await server.kill();
      const names = await readdir(into);
      assert.ok(
        names.every((name) => name.endsWith("Z")),
        names.join(" "),
      );
      for (const name of names) assert.deepEqual((await checkFolder(join(into, name))).problems, []);
      assert.deepEqual((await checkFolder(join(server.folder, "data"))).problems, []);
    },
  );
});

describe("a restore", () => {
  test("is refused where the folder is not empty, or a server uses it, or there is no backup", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    await startCounting(server);
    assert.equal((await backUp(server)).code, 0);
    const [into, folder] = [join(server.folder, "backups"), join(server.folder, "data")];
    const refused = await everstep(["restore", into], storeAt(folder));
    assert.match(refused.stderr, /is not empty/);
    const used = await everstep(["restore", into, "--replace"], storeAt(folder));
    assert.match(used.stderr, /store_locked/);
    const none = await everstep(["restore", join(server.folder, "nothing")], storeAt(join(server.folder, "x")));
    assert.match(none.stderr, /contains no backup/);
    assert.notEqual(refused.code, 0);
  });

  test(`${KILLS} kills while it replaces a folder leave the old or the new one`, TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const session_id = await startCounting(server);
    await untilIteration(server, session_id, 10);
    assert.equal((await backUp(server)).code, 0);
    await untilIteration(server, session_id, 40);
    await server.stop();
    const [into, folder] = [join(server.folder, "backups"), join(server.folder, "data")];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const command = spawnEverstep(["restore", into, "--replace"], storeAt(folder), server.folder);
      const ended = once(command, "exit");
      await wait(500 + Math.random() * 900);
      command.kill("SIGKILL");
      await ended;
      await server.start();
      await untilIteration(server, session_id, 10);
      await server.stop();
      assert.deepEqual((await checkFolder(folder)).problems, []);
    }
  });
});
