import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { onPostgres } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { assertWhole, Cluster } from "./cluster.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import type { Member } from "./member.ts";

/** A few seconds for each component that waits for the database, one after another. */
const SOON_MS = 15_000;
/** Milliseconds for a request to reach the server. */
const ARRIVED_MS = 200;
/** Milliseconds for a client to reconnect. */
const RECONNECTED_MS = 500;

await onPostgres(() => {
  describe("while a process stops", () => {
    /** A cluster whose connection to its database can be cut. */
    async function open(t: TestContext): Promise<{ cluster: Cluster; proxy: FaultyProxy; url: string }> {
      const cluster = await Cluster.open();
      const { proxy, url } = await FaultyProxy.before(cluster.url);
      t.after(async () => {
        await cluster[Symbol.asyncDispose]();
        await proxy[Symbol.asyncDispose]();
      });
      return { cluster, proxy, url };
    }

    const create = (address: string): Promise<number> =>
      fetch(`${address}/api/agents`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ agent_id: "echo", moniker: "echo", session_id: "asked for" }),
      }).then(({ status }) => status);

    async function assertStopsSoon(member: Member): Promise<void> {
      const asked = performance.now();
      await member.stop();
      const ms = performance.now() - asked;
      assert.ok(ms < SOON_MS, `it took ${ms.toFixed()} ms`);
    }

    test("an unresponsive database holds up neither servers nor workers, and nothing is lost", TIMEOUT, async (t) => {
      const { cluster, proxy, url } = await open(t);
      const far = { EVERSTEP_STORE: url, EVERSTEP_LOG_LEVEL: "fatal" };
      const [server, worker] = [cluster.start("server", far), cluster.start("worker", far)];
      const [address] = await Promise.all([server.ready(), worker.ready()]);
      const last = 60;
      const sessions = await cluster.createMany(20, "count", { to: last, delay_ms: 20 });
      await cluster.until("all have begun", sessions, ({ iteration }) => iteration >= 2);
      proxy.cut();
      const answers = [create(address), fetch(`${address}/api/agents`).then(({ status }) => status)];
      await wait(ARRIVED_MS);
      await Promise.all([server, worker].map(assertStopsSoon));
      assert.deepEqual(await Promise.all(answers), [503, 503]);
      await cluster.workers(1);
      await cluster.until("all are done", sessions, ({ status }) => status === "done");
      for (const id of sessions) assertWhole(await cluster.steps(id), last);
    });

    test("a request that is under way is answered", TIMEOUT, async (t) => {
      const { cluster, proxy, url } = await open(t);
      const server = cluster.start("server", { EVERSTEP_STORE: url });
      const address = await server.ready();
      proxy.cut();
      const answer = create(address);
      await wait(ARRIVED_MS);
      const stopped = server.stop();
      await wait(500);
      proxy.mend();
      assert.equal(await answer, 202);
      await stopped;
      assert.equal((await cluster.store.listActions({ session_id: "asked for", limit: 10, offset: 0 })).length, 1);
    });

    test("connections that broke while statements were queued are all closed", TIMEOUT, async (t) => {
      const { proxy, url } = await open(t);
      const store = await openPostgresStore({ url });
      t.after(() => store.close());
      proxy.cut();
      const waiting = ["one", "two", "three"].map((name) => store.withLock(name, async () => {}));
      await wait(50);
      proxy.drop();
      proxy.mend();
      await Promise.allSettled(waiting);
      await eventually("it is back", () => store.withLock("four", async () => true).catch(() => false));
      await store.close();
      await wait(RECONNECTED_MS);
      assert.equal(proxy.isUsed, false);
    });
  });
});
