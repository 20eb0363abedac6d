import assert from "node:assert/strict";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { startPostgres } from "../postgres-process.ts";
import { onPostgres } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { fillUp, makeSpace } from "../store/full-disk.ts";
import { mayMount, mountMemory } from "../store/mounts.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { assertWhole, Cluster } from "./cluster.ts";
import { GuidanceLoad } from "./guidance-load.ts";
import { guidanceWhereabouts } from "./guidance-whereabouts.ts";

/** A fresh database, some log, and room for the test's writes. */
const DISK_BYTES = 400 * 1024 * 1024;
const FLAGS = ["max_wal_size=64MB", "min_wal_size=32MB"];
const LAST = 80;
/** The server frees files now and then, so the disk is filled repeatedly. */
const FILLINGS = 12;

await onPostgres(() => {
  test("the database's disk fills up: nothing acknowledged is lost, and all goes on with room", TIMEOUT, async (t) => {
    if (!mayMount(t)) return;
    await using scratch = await scratchFolder();
    await chmod(scratch.path, 0o755);
    await using disk = await mountMemory(join(scratch.path, "disk"), DISK_BYTES);
    const folder = join(disk.folder, "database");
    await mkdir(folder);
    const database = await startPostgres({ folder, flags: FLAGS });
    await using resources = new AsyncDisposableStack();
    resources.defer(() => database.stop());
    const cluster = resources.use(await Cluster.open(undefined, { url: database.url, remove: async () => {} }));
    const url = await cluster.start("server", { EVERSTEP_RATE_LIMIT: "100000000" }).ready();
    await cluster.workers(2);
    const sessions = await cluster.createMany(10, "count", { to: LAST, delay_ms: 50, payload_bytes: 20_000 });
    const guided = await cluster.createMany(10, "echo");
    await cluster.until("all have begun", sessions, ({ iteration }) => iteration >= 2);
    const load = new GuidanceLoad(url, guided, 4);
    try {
      await eventually("some was acknowledged", async () => load.acknowledged.size > 100);
      for (let round = 0; round < FILLINGS; round += 1) {
        await fillUp(disk, 0);
        await wait(100);
      }
      await makeSpace(disk);
      // A server that could not write its log may have ended; an operator would restart it.
      await database.restart();
      const before = load.acknowledged.size;
      await eventually("more is acknowledged", async () => load.acknowledged.size > before + 100);
    } finally {
      await load.stop();
    }
    await cluster.until("all are done", sessions, ({ status }) => status === "done");
    for (const id of sessions) assertWhole(await cluster.steps(id), LAST);
    const whereabouts = (): ReturnType<typeof guidanceWhereabouts> =>
      guidanceWhereabouts(cluster.url, load.acknowledged);
    await eventually("all is used", async () => (await whereabouts()).open === 0);
    const { wrong } = await whereabouts();
    t.diagnostic(`${load.acknowledged.size} were acknowledged, ${wrong.length} of them are not where they should be`);
    assert.equal(wrong.length, 0, wrong.slice(0, 10).join("\n"));
  });
});
