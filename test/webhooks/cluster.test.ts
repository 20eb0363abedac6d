import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { Cluster } from "../cluster/cluster.ts";
import { onPostgres } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { aWebhook } from "../store/fixtures.ts";
import { eventsOf, Receiver } from "./receiver.ts";

const ALLOW = { EVERSTEP_WEBHOOK_ALLOW: "127.0.0.1" };
const PAST = "2020-01-01T00:00:00.000Z";
const frames: JsonObject[] = [
  { ask: { text: "one?" }, wait: { until: PAST } },
  { ask: { text: "two?" }, wait: { until: PAST } },
  {},
];
const EXPECTED = ["one?", "two?", "session.ended"];

await onPostgres(() => {
  describe("webhooks of several workers on one database", () => {
    test(
      "a webhook that one process added hears at once of what others do, each event once and in order",
      TIMEOUT,
      async () => {
        await using receiver = await Receiver.start();
        await using cluster = await Cluster.open();
        const workers = [cluster.start("worker", ALLOW), cluster.start("worker", ALLOW)];
        await Promise.all(workers.map((worker) => worker.ready()));
        await cluster.store.webhooks.put(aWebhook({ webhook_id: "w", url: receiver.url }));
        const ids = await cluster.createMany(30, "script", { frames });
        await receiver.until("all arrive", ({ length }) => length >= ids.length * EXPECTED.length);
        await eventually("all are settled", async () => {
          const all = await cluster.store.webhooks.listDeliveries({ webhook_id: "w", limit: 500 });
          return all.length === ids.length * EXPECTED.length && all.every(({ status }) => status === "delivered");
        });
        for (const id of ids)
          assert.deepEqual(
            eventsOf(receiver.received, id).map(({ payload: { type, data } }) => data.ask?.text ?? type),
            EXPECTED,
          );
        assert.equal(receiver.received.length, ids.length * EXPECTED.length, "none was sent twice");
      },
    );

    test("what a worker was sending when it was killed is sent by another, with the same id", TIMEOUT, async () => {
      await using receiver = await Receiver.start();
      await using cluster = await Cluster.open();
      const [first] = [cluster.start("worker", ALLOW)];
      await first.ready();
      await cluster.store.webhooks.put(aWebhook({ webhook_id: "w", url: receiver.url }));
      receiver.respond = () => {};
      const [session_id] = await cluster.createMany(1, "script", { frames: [{}] });
      await receiver.until("it is under way", ({ length }) => length === 1);
      const second = cluster.start("worker", ALLOW);
      await second.ready();
      receiver.respond = (response) => void response.writeHead(200).end();
      await first.kill();
      const received = await receiver.until("the other sends it", ({ length }) => length === 2);
      assert.equal(new Set(received.map(({ id, body }) => id + body)).size, 1);
      assert.equal(received[1]?.payload.data.session_id, session_id);
    });
  });
});
