import assert from "node:assert/strict";
import { readdir, truncate } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { scratchFolder } from "../store/scratch-folder.ts";
import { ENGINE } from "../store-home.ts";
import { everstep } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

type Answer = Record<string, unknown>;

const ask = async ({ url }: ServerProcess, path: string): Promise<Answer> => {
  const response = await fetch(`${url}${path}`);
  return { http_status: response.status, ...((await response.json()) as Answer) };
};

/** A session that counts to ten and is done. */
async function counted(server: ServerProcess): Promise<string> {
  const response = await fetch(`${server.url}/api/agents`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ agent_id: "counter", moniker: "count", params: { to: 10 } }),
  });
  const { session_id } = (await response.json()) as { session_id: string };
  await eventually("its end", async () => (await ask(server, `/api/sessions/${session_id}`))["status"] === "done");
  return session_id;
}

/** PostgreSQL needs a folder for volumes. */
async function startServer(folder: string): Promise<ServerProcess> {
  return ServerProcess.start(ENGINE === "lancedb" ? {} : { EVERSTEP_ARCHIVE: folder });
}

describe("everstep archive", () => {
  test(
    "moves ended sessions' history while the server runs, lists it, brings it back, and says what it dropped",
    TIMEOUT,
    async () => {
      await using scratch = await scratchFolder();
      await using server = await startServer(scratch.path);
      const run = async (...args: string[]) => everstep(["archive", ...args, "--url", server.url]);
      const sessions = [await counted(server), await counted(server)];
      const [first = "", second = ""] = sessions;
      const steps = (id: string): Promise<Answer> => ask(server, `/api/agent-steps?session_id=${id}&limit=50`);
      const before = await steps(first);
      assert.equal((await run()).stdout.trim(), "nothing is archived");
      const planned = await run("--older-than", "0h", "--dry-run");
      assert.match(planned.stdout, /^2 sessions, \d+ steps, 0 messages would be archived/);
      const moved = await run("--older-than", "0h");
      assert.match(moved.stdout, /^2 sessions, \d+ steps, 0 messages archived \(1 volume, /);
      assert.deepEqual(await steps(first), before);
      const archived = (await ask(server, `/api/sessions/${first}`))["archived"] as Answer;
      assert.equal(archived["steps"], (before["steps"] as unknown[]).length);
      assert.match((await run()).stdout, /VOLUME.*\n.* archived +2 /);

      const results = await ask(server, "/api/search?q=10");
      assert.deepEqual([results["hits"], results["archives_skipped"]], [[], 2]);
      const searched = await everstep(["search", "10", "--url", server.url]);
      assert.match(searched.stderr, /2 archived sessions were not searched/);

      assert.match((await run("--restore", second)).stdout, /^1 session, /);
      assert.equal((await ask(server, `/api/sessions/${second}`))["archived"], undefined);
      const dropped = await run("--drop-older-than", "0h");
      assert.match(dropped.stdout, /dropped \(1 volume,/);
      assert.deepEqual((await steps(first))["steps"], []);
      const left = (await ask(server, `/api/sessions/${first}`))["archived"] as Answer;
      assert.deepEqual(left, { steps: 0, dropped_steps: (before["steps"] as unknown[]).length });
      assert.notDeepEqual((await steps(second))["steps"], []);
    },
  );

  test("refuses two jobs in one call, invalid durations, and unknown sessions", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    await using server = await startServer(scratch.path);
    const run = async (...args: string[]) => everstep(["archive", ...args, "--url", server.url]);
    assert.equal((await run("--older-than", "1d", "--drop-older-than", "1d")).code, 2);
    assert.notEqual((await run("--older-than", "soon")).code, 0);
    const unknown = await run("--restore", "nobody");
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /there is no session nobody/);
  });

  test("leaves volumes in the data folder, where backups and checks find them", {
    ...TIMEOUT,
    skip: ENGINE !== "lancedb",
  }, async () => {
    await using server = await ServerProcess.start();
    const session_id = await counted(server);
    const before = await ask(server, `/api/agent-steps?session_id=${session_id}`);
    const moved = await everstep(["archive", "--older-than", "0h", "--url", server.url]);
    assert.equal(moved.code, 0, moved.stderr);
    const made = await everstep(["backup", join(server.folder, "backups"), "--url", server.url]);
    assert.equal(made.code, 0, made.stderr);
    assert.doesNotMatch(made.stdout, /not in it/);
    await server.kill();
    const folder = join(server.folder, "restored");
    const store = { EVERSTEP_STORE: `lancedb:${folder}` };
    const restored = await everstep(["restore", join(server.folder, "backups")], store);
    assert.equal(restored.code, 0, restored.stderr);
    const checked = await everstep(["check"], store);
    assert.match(checked.stdout, /volume \w+: \d+ steps/);
    assert.equal(checked.code, 0, checked.stdout);
    await using successor = await ServerProcess.start(store);
    assert.deepEqual(await ask(successor, `/api/agent-steps?session_id=${session_id}`), before);
    await successor.stop();
    const [volume = ""] = await readdir(join(folder, "archive"));
    const data = join(folder, "archive", volume, "data");
    const [name = ""] = await readdir(data);
    await truncate(join(data, name), 500);
    const damaged = await everstep(["check"], store);
    assert.equal(damaged.code, 1, damaged.stdout);
  });
});
