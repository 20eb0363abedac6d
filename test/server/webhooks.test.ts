import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import type { JsonObject } from "../../src/domain/json.ts";
import { deliverySchema, webhookSchema } from "../../src/domain/webhook.ts";
import { eventsOf, Receiver, verified } from "../webhooks/receiver.ts";
import { Api, pathOf, problemOf, read } from "./api.ts";
import { eventually, sharedServer, TIMEOUT } from "./server-fixture.ts";

const webhook = webhookSchema.strict();
const withSecret = webhook.extend({ secret: z.string().regex(/^whsec_[A-Za-z0-9+/]{43}=$/) }).strict();
const deliveries = z.strictObject({ deliveries: z.array(deliverySchema.strict()), next: z.string().nullable() });
const EVENTS = ["session.asks", "session.ended", "session.failed"];
const PAST = "2020-01-01T00:00:00.000Z";

/** Asks twice, continuing by itself each time, and ends. */
const ASKS_TWICE: JsonObject = {
  frames: [
    { ask: { text: "one?", choices: [{ value: "yes" }] }, wait: { until: PAST } },
    { ask: { text: "two?" }, wait: { until: PAST } },
    { data: { answer: 42 } },
  ],
};

const server = sharedServer({ EVERSTEP_WEBHOOK_ALLOW: "127.0.0.1, ::1", EVERSTEP_LOG_LEVEL: "trace" });

describe("webhooks", TIMEOUT, () => {
  test("show their secret once, keep it when they are changed, and show another one when it is rotated", async () => {
    const api = new Api(server().url);
    const path = pathOf("webhooks", "ops ü/1");
    const created = read(await api.put(path, { url: "https://a.example/x?y=1", events: EVENTS }), 200, withSecret);
    assert.deepEqual([created.webhook_id, created.url, created.agent_id], ["ops ü/1", "https://a.example/x?y=1", null]);
    const change = { url: "https://b.example/", events: ["session.asks", "session.asks"], agent_id: "a" };
    const changed = read(await api.put(path, change), 200, webhook);
    const { secret, ...before } = created;
    const { updated_at } = changed;
    assert.deepEqual(changed, { ...before, ...change, events: ["session.asks"], updated_at });
    assert.deepEqual(read(await api.get(path), 200, webhook), changed);
    const list = read(await api.get("/api/webhooks"), 200, z.strictObject({ webhooks: z.array(webhook) }));
    assert.deepEqual(list.webhooks, [changed]);
    const rotated = read(await api.post(`${path}/rotate-secret`), 200, withSecret);
    assert.notEqual(rotated.secret, secret);
    assert.equal((await api.delete(path)).status, 204);
    for (const answer of [
      await api.get(path),
      await api.delete(path),
      await api.post(`${path}/rotate-secret`),
      await api.get(`${path}/deliveries`),
      await api.post(`${path}/deliveries/none/send-again`),
    ])
      problemOf(answer, 404);
    const { stdout, stderr } = server();
    for (const shown of [secret, rotated.secret]) assert.ok(!(stdout + stderr).includes(shown), "a secret was logged");
  });

  test("are refused where they could not be delivered to, or would show a password", async () => {
    const api = new Api(server().url);
    const put = (body: JsonObject) =>
      api.put(pathOf("webhooks", "refused"), { url: "https://a.example/", events: EVENTS, ...body });
    for (const url of [
      "",
      "a.example",
      "ftp://a.example/",
      "https://u:p@a.example/",
      "http://10.0.0.1/",
      "http://[fd00::1]/",
    ])
      assert.match(problemOf(await put({ url }), 400).detail, /^url: /, url);
    problemOf(await put({ events: [] }), 400);
    problemOf(await put({ events: ["session.born"] }), 400);
    problemOf(await put({ secret: "whsec_mine" }), 400);
    problemOf(await api.get(pathOf("webhooks", "refused")), 404);
  });

  test("tell in order what a session asks and that it ended, are listed in pages, counted, and sent again", async () => {
    await using receiver = await Receiver.start();
    const api = new Api(server().url);
    const path = pathOf("webhooks", "told");
    const { secret } = read(
      await api.put(path, { url: receiver.url, events: EVENTS, agent_id: "told" }),
      200,
      withSecret,
    );
    await api.create("script", { params: ASKS_TWICE, agent_id: "not told" });
    const { session_id } = await api.create("script", { params: ASKS_TWICE, agent_id: "told" });
    const received = await receiver.until("all arrive", ({ length }) => length >= 3);
    for (const one of received) verified(secret, one);
    const events = eventsOf(received, session_id);
    assert.deepEqual(
      events.map(({ payload: { type, data } }) => [type, data.ask?.text ?? data.result, data.status]),
      [
        ["session.asks", "one?", "waiting"],
        ["session.asks", "two?", "waiting"],
        ["session.ended", { answer: 42 }, "done"],
      ],
    );
    const listed = await eventually("all are delivered", async () => {
      const page = read(await api.get(`${path}/deliveries`), 200, deliveries);
      return page.deliveries.every(({ status }) => status === "delivered") && page;
    });
    assert.equal(listed.next, null);
    const newestFirst = events.map(({ id }) => id).toReversed();
    assert.deepEqual(
      listed.deliveries.map(({ delivery_id, session_id: id, attempts, response_status }) => [
        delivery_id,
        id,
        attempts,
        response_status,
      ]),
      newestFirst.map((id) => [id, session_id, 1, 204]),
    );
    const first = read(await api.get(`${path}/deliveries`, { limit: 2 }), 200, deliveries);
    const second = read(await api.get(`${path}/deliveries`, { limit: 2, after: first.next ?? "" }), 200, deliveries);
    assert.deepEqual([...first.deliveries, ...second.deliveries], listed.deliveries);
    assert.equal(second.next, null);
    const again = newestFirst[1] ?? "";
    const sent = read(await api.post(`${path}/deliveries/${again}/send-again`), 202, deliverySchema.strict());
    assert.deepEqual([sent.delivery_id, sent.status], [again, "pending"]);
    const all = await receiver.until("it is sent again", ({ length }) => length === 4);
    assert.deepEqual([all.at(-1)?.id, all.at(-1)?.body], [again, all.find(({ id }) => id === again)?.body]);
    problemOf(await api.post(`${pathOf("webhooks", "other")}/deliveries/${again}/send-again`), 404);
    await eventually("it is counted", async () =>
      /^everstep_webhook_attempts_total\{outcome="delivered"\} [4-9]/m.test((await api.get("/metrics")).text),
    );
  });

  test("tell of a session that fails, and why", async () => {
    await using receiver = await Receiver.start();
    const api = new Api(server().url);
    await api.put(pathOf("webhooks", "failures"), { url: receiver.url, events: ["session.failed"], agent_id: "fails" });
    const frames = [{ actions: [{ action_type: "agent_create", moniker: "there is none" }] }];
    const options = { retry: { max_attempts: 1 } };
    const { session_id } = await api.create("script", { agent_id: "fails", params: { frames }, options });
    const [failure] = await receiver.until("it arrives", ({ length }) => length === 1);
    assert.equal(failure?.payload.data.error, (await api.session(session_id)).last_error);
    assert.ok(failure?.payload.data.error);
  });
});
