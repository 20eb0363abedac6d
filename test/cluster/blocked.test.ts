import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../src/domain/json.ts";
import type { WorkerInfo } from "../../src/store/store.ts";
import { freePort } from "../free-port.ts";
import { onPostgres } from "../postgres-server.ts";
import { Api, SHAPES } from "../server/api.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { assertWhole, Cluster } from "./cluster.ts";
import { Member } from "./member.ts";

const MONIKERS = { EVERSTEP_MONIKERS: fileURLToPath(new URL("./monikers", import.meta.url)) };
const LEASE_MS = 5000;
const LONG_MS = 15_000;

await onPostgres(() => {
  describe("a step that computes without a pause", { concurrency: 2 }, () => {
    test("for longer than a lease: its worker keeps its sessions, and others are told", TIMEOUT, async () => {
      await using cluster = await Cluster.open(MONIKERS.EVERSTEP_MONIKERS);
      await using folder = await scratchFolder();
      const file = join(folder.path, "begun");
      const workers = [cluster.start("worker", MONIKERS), cluster.start("worker", MONIKERS)];
      await Promise.all(workers.map((worker) => worker.ready()));
      const sessions = await cluster.createMany(6, "count", { to: 60, delay_ms: 100 });
      const session_id = await cluster.create("blocks", { ms: LONG_MS, file });
      const blocked = async (): Promise<WorkerInfo | undefined> =>
        [...(await cluster.owners()).values()].find(({ blocked_ms }) => blocked_ms > 0);
      const first = await eventually("one is blocked", blocked);
      const last = await eventually("it is blocked for longer than a lease", async () => {
        const info = (await blocked()) ?? assert.fail("it was taken for dead, or it was too short");
        return info.blocked_ms > LEASE_MS + 2000 ? info : undefined;
      });
      assert.equal(last.name, first.name, "the step was begun elsewhere too");
      assert.ok(last.silent_ms < LEASE_MS, `nothing was heard of it for ${last.silent_ms} ms`);
      assert.equal(last.owned_sessions, first.owned_sessions);
      await cluster.until("it is through", [session_id], ({ status }) => status === "done");
      assert.equal(await readFile(file, "utf8"), "begun\n");
      await cluster.until("the others are done", sessions, ({ status }) => status === "done");
      for (const id of sessions) assertWhole(await cluster.steps(id), 60);
      await eventually("it turns again", async () => (await blocked()) === undefined);
    });

    test(
      "for ever: the worker ends itself and names the session, and others go on with its sessions",
      TIMEOUT,
      async () => {
        await using cluster = await Cluster.open(MONIKERS.EVERSTEP_MONIKERS);
        await using folder = await scratchFolder();
        const victim = cluster.start("worker", { ...MONIKERS, EVERSTEP_BLOCKED_LIMIT_S: "3" });
        await victim.ready();
        const sessions = await cluster.createMany(5, "count", { to: 100, delay_ms: 100 });
        await cluster.until("all have begun", sessions, ({ iteration }) => iteration >= 1);
        const params = { ms: 3_600_000, file: join(folder.path, "begun") };
        const session_id = await cluster.create("blocks", params);
        assert.deepEqual(await victim.exited, [null, "SIGKILL"]);
        const line = victim.said.split("\n").find((text) => text.includes("ends itself")) ?? assert.fail(victim.said);
        const said = JSON.parse(line) as { level: number; session_ids: string[] };
        assert.equal(said.level, 60);
        assert.ok(said.session_ids.includes(session_id), line);
        const claimed = await eventually(
          "its session is free",
          async () => (await cluster.store.claimSession({ worker: "test", session_id })) ?? undefined,
        );
        assert.equal(claimed.after_crash, true);
        await cluster.workers(1);
        await cluster.until("the others are done", sessions, ({ status }) => status === "done");
        for (const id of sessions) assertWhole(await cluster.steps(id), 100);
      },
    );
  });

  for (const engine of ["lancedb", "postgres"] as const)
    test(
      `on ${engine}: the server is reached before sessions run, and ends itself where one blocks it`,
      TIMEOUT,
      async () => {
        await using resources = new AsyncDisposableStack();
        const folder = resources.use(await scratchFolder());
        const cluster = engine === "postgres" ? resources.use(await Cluster.open()) : null;
        const port = await freePort();
        const url = `http://127.0.0.1:${port}`;
        const environment = {
          ...MONIKERS,
          EVERSTEP_STORE: cluster?.url ?? `lancedb:${join(folder.path, "data")}`,
          EVERSTEP_PORT: String(port),
          EVERSTEP_LOG_LEVEL: "warn",
          EVERSTEP_BLOCKED_LIMIT_S: "3",
        };
        const start = async (): Promise<Member> => {
          const member = new Member("serve", environment, folder.path);
          resources.defer(() => member.kill());
          await member.ready();
          return member;
        };
        const first = await start();
        const api = new Api(url);
        const create = async (moniker: string, params: JsonObject): Promise<string> => {
          const { status, text } = await api.post("/api/agents", { agent_id: moniker, moniker, params });
          assert.equal(status, 202, text);
          return SHAPES.accepted.parse(JSON.parse(text)).session_id;
        };
        const asking = await create("asks", { url: `${url}/health` });
        await eventually("it asks", async () => (await api.session(asking)).iteration >= 1);
        await first.kill();
        const second = await start();
        await eventually("it asks again", async () => (await api.session(asking)).iteration >= 30);
        const steps = await api.steps(asking);
        assert.deepEqual([...new Set(steps.map(({ text }) => text))], ["200"]);
        const blocking = await create("blocks", { ms: 3_600_000, file: join(folder.path, "begun") });
        assert.deepEqual(await second.exited, [null, "SIGKILL"]);
        assert.match(second.said, new RegExp(`${blocking}.*ends itself`));
      },
    );
});
