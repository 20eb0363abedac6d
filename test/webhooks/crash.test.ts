import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { JsonObject } from "../../src/domain/json.ts";
import { repetitions } from "../repetitions.ts";
import { Api, pathOf } from "../server/api.ts";
import { eventually, ServerProcess } from "../server/server-fixture.ts";
import { randomFor } from "../store/random.ts";
import { eventsOf, type Received, Receiver, verified } from "./receiver.ts";

const KILLS = repetitions("EVERSTEP_WEBHOOK_KILLS", { few: 2, many: 20 });
const SESSIONS = 20;
const PAST = "2020-01-01T00:00:00.000Z";
const FRAMES: JsonObject[] = [
  { ask: { text: "one?" }, wait: { until: PAST } },
  { ask: { text: "two?" }, wait: { until: PAST } },
  { text: "the end" },
];
const EXPECTED = ["one?", "two?", "session.ended"];

const labelOf = ({ payload: { type, data } }: Pick<Received, "payload">): string => data.ask?.text ?? type;

/** A session's deliveries were first accepted in the order of its events. */
function verifyOrder(taken: readonly Received[], session_id: string): void {
  assert.deepEqual(eventsOf(taken, session_id).map(labelOf), EXPECTED, session_id);
}

describe("a server that is killed while it delivers", () => {
  test(`delivers every event at least once, with one id, each session's in order, over ${KILLS} kills`, {
    timeout: 60_000 + KILLS * 20_000,
  }, async (context) => {
    const random = randomFor(context);
    await using receiver = await Receiver.start();
    const taken: Received[] = [];
    receiver.respond = (response, received) => {
      const [isTaken, ms] = [random.below(10) > 0, random.below(30)];
      setTimeout(() => {
        if (isTaken) taken.push(received);
        response.writeHead(isTaken ? 200 : 500).end();
      }, ms);
    };
    await using server = await ServerProcess.start({ EVERSTEP_WEBHOOK_ALLOW: "127.0.0.1" });
    const api = new Api(server.url);
    const events = ["session.asks", "session.ended"];
    const answer = await api.put(pathOf("webhooks", "w"), { url: receiver.url, events });
    const { secret } = JSON.parse(answer.text) as { secret: string };
    const ids: string[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = receiver.received.length;
      const options = { step_interval_ms: 5 };
      for (let at = 0; at < SESSIONS; at += 1)
        ids.push((await api.create("script", { params: { frames: FRAMES }, options })).session_id);
      await receiver.until("some arrive", ({ length }) => length > before);
      await wait(random.below(150));
      await server.kill();
      await server.start();
    }
    await eventually(
      "every event was taken",
      async () => new Set(taken.map(({ id }) => id)).size >= ids.length * EXPECTED.length,
    );
    for (const id of ids) verifyOrder(taken, id);
    for (const one of receiver.received) verified(secret, one);
    const repeated = receiver.received.length - new Set(receiver.received.map(({ id }) => id)).size;
    context.diagnostic(`${receiver.received.length} attempts, ${repeated} of them repeated`);
    await eventually("all are settled", async () => {
      const page = await api.get(`${pathOf("webhooks", "w")}/deliveries`, { limit: 500 });
      const { deliveries } = JSON.parse(page.text) as { deliveries: { status: string }[] };
      return (
        deliveries.length === ids.length * EXPECTED.length && deliveries.every(({ status }) => status === "delivered")
      );
    });
    assert.deepEqual(server.loggedErrors, []);
  });
});
