import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { onPostgres } from "../postgres-server.ts";
import { repetitions } from "../repetitions.ts";
import { eventually } from "../server/server-fixture.ts";
import { reportedRandom } from "../store/seeded-random.ts";
import { Cluster } from "./cluster.ts";
import { GuidanceLoad } from "./guidance-load.ts";
import { guidanceWhereabouts } from "./guidance-whereabouts.ts";
import type { Member } from "./member.ts";

const KILLS = repetitions("EVERSTEP_CLUSTER_KILLS", { few: 1, many: 50 });
const FREEZES = repetitions("EVERSTEP_CLUSTER_FREEZES", { few: 1, many: 20 });
/** So large that a worker that takes over sessions reads for a while, and receives requests meanwhile. */
const LARGE = { to: 1_000_000, delay_ms: 150, payload_bytes: 300_000 };
const SESSIONS = 60;
const CLIENTS = 12;
const WORKERS = 2;
/** Longer than the lease: the others take over a frozen worker's sessions. */
const FROZEN_MS = 8000;
const FAULT_MS = 120_000;
const UNLIMITED = { EVERSTEP_RATE_LIMIT: "100000000" };

await onPostgres(() => {
  describe("workers whose sessions have large states", () => {
    const title = `acknowledged guidance is never nowhere, in ${KILLS} kills and ${FREEZES} freezes`;
    test(title, { timeout: 60_000 + (KILLS + FREEZES) * FAULT_MS }, async (t) => {
      const random = reportedRandom(t, "EVERSTEP_CLUSTER_SEED");
      await using cluster = await Cluster.open();
      const url = await cluster.start("server", UNLIMITED).ready();
      const workers = await cluster.workers(WORKERS);
      const sessions = await cluster.createMany(SESSIONS, "count", LARGE);
      await cluster.until("all have begun", sessions, ({ iteration }) => iteration >= 0);
      const load = new GuidanceLoad(url, sessions, CLIENTS);
      try {
        for (let round = 0; round < KILLS + FREEZES; round += 1) {
          await hasShare(cluster, workers);
          await wait(500 + random.integer(1500));
          const at = random.integer(WORKERS);
          await (isFreeze(round) ? freeze(workers, at) : kill(cluster, workers, at));
          t.diagnostic(`after fault ${round + 1}: ${load.acknowledged.size} acknowledged`);
        }
      } finally {
        await load.stop();
      }
      await eventually(
        "all is used",
        async () => (await guidanceWhereabouts(cluster.url, load.acknowledged)).open === 0,
      );
      const { wrong } = await guidanceWhereabouts(cluster.url, load.acknowledged);
      t.diagnostic(`${load.acknowledged.size} were acknowledged, ${wrong.length} of them are not where they should be`);
      assert.ok(load.acknowledged.size > 100 * (KILLS + FREEZES), "so little was said that nothing was tried");
      assert.equal(wrong.length, 0, wrong.slice(0, 10).join("\n"));
    });
  });
});

/** Freezes are spread evenly among the kills. */
function isFreeze(round: number): boolean {
  const freezesUntil = (rounds: number): number => Math.floor((rounds * FREEZES) / (KILLS + FREEZES));
  return freezesUntil(round + 1) > freezesUntil(round);
}

/** Every worker owns sessions: a fault that hits none would prove nothing. */
async function hasShare(cluster: Cluster, workers: Member[]): Promise<void> {
  await eventually("every worker has some", async () => {
    const owners = await cluster.owners();
    return workers.every(({ pid }) => (owners.get(pid)?.owned_sessions ?? 0) >= SESSIONS / WORKERS / 2);
  });
}

async function kill(cluster: Cluster, workers: Member[], at: number): Promise<void> {
  await workers[at]?.kill();
  [workers[at]] = (await cluster.workers(1)) as [Member];
}

async function freeze(workers: Member[], at: number): Promise<void> {
  workers[at]?.signal("SIGSTOP");
  await wait(FROZEN_MS);
  workers[at]?.signal("SIGCONT");
}
