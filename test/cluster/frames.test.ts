import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { onPostgres } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { Cluster } from "./cluster.ts";
import type { Member } from "./member.ts";

const MONIKERS = { EVERSTEP_MONIKERS: fileURLToPath(new URL("./monikers", import.meta.url)) };

async function workersOf(cluster: Cluster, count: number): Promise<Member[]> {
  const members = Array.from({ length: count }, () => cluster.start("worker", MONIKERS));
  await Promise.all(members.map((member) => member.ready()));
  return members;
}

const frame = { step: "0", next_step: "1", state: {}, done: false };

await onPostgres(() => {
  describe("frames that say more, on several workers", () => {
    test("a step marked once that was started on a frozen worker is told so on the next", TIMEOUT, async () => {
      await using cluster = await Cluster.open(MONIKERS.EVERSTEP_MONIKERS);
      const [zombie] = (await workersOf(cluster, 1)) as [Member];
      const ids = await cluster.createMany(5, "acts-once");
      await cluster.until("all have begun to act", ids, ({ started_attempt }) => started_attempt?.begun === 1);
      zombie.signal("SIGSTOP");
      await workersOf(cluster, 1);
      await cluster.until("all are done", ids, ({ status }) => status === "done");
      zombie.signal("SIGCONT");
      await eventually("it is back", async () => (await cluster.owners()).has(zombie.pid));
      for (const id of ids) {
        const steps = await cluster.steps(id);
        assert.deepEqual(
          steps.map(({ iteration, data }) => [iteration, data]),
          [
            [0, null],
            [1, { number: 2, after: "crash" }],
          ],
        );
      }
    });

    test("a timer fires on another worker when its own is killed", TIMEOUT, async () => {
      await using cluster = await Cluster.open();
      const [victim] = (await cluster.workers(2)) as [Member];
      const until = new Date(Date.now() + 4000).toISOString();
      const frames = [
        { ...frame, wait: { until } },
        { ...frame, done: true },
      ];
      const ids = await cluster.createMany(12, "script", { frames });
      await cluster.until("all wait", ids, ({ wake_at }) => wake_at !== null);
      await eventually("the one to kill has some", async () => (await cluster.owned(victim)) > 0);
      await victim.kill();
      await cluster.until("all are done", ids, ({ status }) => status === "done");
      for (const id of ids) {
        const [, second, ...more] = await cluster.steps(id);
        assert.ok(second && second.created_at >= until, `${second?.created_at} is before ${until}`);
        assert.deepEqual(more, []);
      }
    });

    test("children on other workers report to their parent, and are destroyed with it", TIMEOUT, async () => {
      await using cluster = await Cluster.open();
      await cluster.workers(3);
      const create = { action_type: "agent_create", moniker: "count", params: { to: 2, delay_ms: 20 } };
      const endless = { action_type: "agent_create", moniker: "count", params: { to: 100_000, delay_ms: 20 } };
      const counting = Array.from({ length: 20 }, () => create);
      const waits = Array.from({ length: 20 }, () => ({ ...frame, wait: {} }));
      const frames = [{ ...frame, actions: [...counting, endless], wait: {} }, ...waits];
      const parent = await cluster.create("script", { frames });
      const heard = async (): Promise<string[]> =>
        (await cluster.steps(parent)).flatMap(({ guidance }) =>
          guidance.map((report) => (report as { child: { session_id: string } }).child.session_id),
        );
      await eventually("all that end are heard of", async () => (await heard()).length === 20);
      const expected = counting.map((_, n) => `${parent}.0.${n}`);
      assert.deepEqual(new Set(await heard()), new Set(expected));
      await cluster.submit({ action_type: "agent_destroy", session_id: parent });
      await cluster.until(
        "both are gone",
        [parent, `${parent}.0.20`],
        ({ stop_reason }) => stop_reason === "destroyed",
      );
    });

    test("a release on a server lets the sessions of held workers go on", TIMEOUT, async () => {
      await using cluster = await Cluster.open();
      const [first] = (await cluster.workers(1)) as [Member];
      const ids = await cluster.createMany(4, "count", { to: 100_000, delay_ms: 10 });
      await cluster.until("all have begun", ids, ({ iteration }) => iteration >= 0);
      await first.stop();
      const before = await Promise.all(ids.map(async (id) => (await cluster.session(id)).iteration));
      const held = cluster.start("worker", { EVERSTEP_START_HELD: "1" });
      const server = cluster.start("server");
      const [, url] = await Promise.all([held.ready(), server.ready()]);
      await eventually("they are in place", async () => (await cluster.owned(held)) === 4);
      const post = (body: object): Promise<Response> =>
        fetch(`${url}/api/system/release`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
      assert.equal((await post({})).status, 400);
      assert.equal((await post({ session_ids: [ids[0]] })).status, 200);
      await cluster.until("the first goes on", [ids[0] as string], ({ iteration }) => iteration > (before[0] ?? 0));
      for (const at of [1, 2, 3]) assert.equal((await cluster.session(ids[at] as string)).iteration, before[at]);
      assert.equal((await post({ all: true })).status, 200);
      for (const [at, id] of ids.entries())
        await cluster.until("it goes on", [id], ({ iteration }) => iteration > (before[at] ?? 0));
    });
  });
});
