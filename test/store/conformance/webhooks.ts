import assert from "node:assert/strict";
import { newId } from "../../../src/domain/ids.ts";
import type { Session } from "../../../src/domain/session.ts";
import { payloadOf, type StoredDelivery, webhookPayloadSchema } from "../../../src/domain/webhook.ts";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import { aQuestion, aSession, aTime, aWebhook, mustAdvance, mustCommit, mustCreate, written } from "../fixtures.ts";
import { type OpenStore, testOnFreshStore } from "./opened-store.ts";

const LATER = "2999-01-01T00:00:00.000Z";

async function change(store: Store, owned: OwnedSession, fields: Partial<Session>): Promise<OwnedSession> {
  const session = { ...owned.session, updated_at: aTime(), ...fields };
  await mustCommit(store, { sessions: [{ kind: "update", session, owner: owned.owner }] });
  return written(owned, session);
}

const ended = (status: "done" | "stopped" | "error", more: Partial<Session> = {}): Partial<Session> => ({
  status,
  ended_at: aTime(),
  question: null,
  ...more,
});

const claimAll = async (store: Store, most = 100): Promise<StoredDelivery[]> =>
  (await store.webhooks.claim({ now: LATER, most, busy: new Map() })).map(({ delivery }) => delivery);

const deliveriesOf = (store: Store, webhook_id: string): Promise<StoredDelivery[]> =>
  store.webhooks.listDeliveries({ webhook_id, limit: 100 });

const settledAs = (
  delivery: StoredDelivery,
  status: StoredDelivery["status"],
  more: Partial<StoredDelivery> = {},
): StoredDelivery => ({
  ...delivery,
  status,
  attempts: delivery.attempts + 1,
  last_attempt_at: aTime(),
  next_attempt_at: status === "pending" ? aTime() : null,
  ended_at: status === "pending" ? null : aTime(),
  ...more,
});

/** The webhook deliveries of sessions' events. */
export function webhooks(open: OpenStore): void {
  const test = testOnFreshStore(open);

  test("a webhook that is put again keeps its secret, and all of it is there after reopening", async ({
    store,
    reopen,
  }) => {
    const first = aWebhook({ webhook_id: "ü \u{1F600}", agent_id: "a" });
    assert.deepEqual(await store.webhooks.put(first), first);
    const second = aWebhook({ webhook_id: first.webhook_id, url: "https://b.example/", events: ["session.asks"] });
    const { url, events, agent_id, updated_at } = second;
    const changed = { ...first, url, events, agent_id, updated_at };
    assert.deepEqual(await store.webhooks.put(second), changed);
    const rotated = await store.webhooks.replaceSecret(first.webhook_id, { secret: "whsec_bmV3", former_until: LATER });
    const expected = { ...changed, secret: "whsec_bmV3", former_secret: first.secret, former_secret_until: LATER };
    assert.deepEqual(rotated, expected);
    const other = await store.webhooks.put(aWebhook({ webhook_id: "a" }));
    assert.equal(await store.webhooks.replaceSecret("none", { secret: "x", former_until: LATER }), null);
    const reopened = await reopen();
    assert.deepEqual(await reopened.webhooks.list({ limit: 10, offset: 0 }), [other, expected]);
    assert.deepEqual(await reopened.webhooks.get(first.webhook_id), expected);
    assert.equal(await reopened.webhooks.get("none"), null);
  });

  test("a session that begins with a question, as a fork of a step that asks does, is an event; any other new one is not", async ({
    store,
  }) => {
    const { webhook_id } = await store.webhooks.put(aWebhook());
    let due = 0;
    store.webhooks.onDue(() => (due += 1));
    await mustCreate(store, aSession());
    await mustCreate(store, aSession(ended("done")));
    assert.equal(due, 0);
    const asking = await mustCreate(store, aSession({ status: "waiting", question: aQuestion("go on?") }));
    assert.equal(due, 1);
    assert.deepEqual(
      (await deliveriesOf(store, webhook_id)).map(({ event, session_id }) => [event, session_id]),
      [["session.asks", asking.session.session_id]],
    );
  });

  test("the commit that makes an event writes a delivery for each webhook that subscribes to it, and no other commit does", async ({
    store,
    reopen,
  }) => {
    const { webhook_id: all } = await store.webhooks.put(aWebhook());
    const { webhook_id: asks } = await store.webhooks.put(aWebhook({ events: ["session.asks"], agent_id: "asker" }));
    let due = 0;
    store.webhooks.onDue(() => (due += 1));
    const question = aQuestion("may I? \u0000", { about: { kind: "tool", args: { z: "\ud800", a: 1 } } });
    let owned = await mustCreate(store, aSession({ agent_id: "asker" }));
    owned = (await mustAdvance(store, owned)).owned;
    owned = await change(store, owned, { status: "paused" });
    assert.deepEqual([await claimAll(store), due], [[], 0]);
    owned = await change(store, owned, { status: "waiting", question });
    owned = await change(store, owned, { status: "paused" });
    owned = await change(store, owned, { status: "waiting" });
    owned = await change(store, owned, { status: "running", question: null });
    await change(store, owned, ended("done", { result: { z: [1], a: "\u0000" } }));
    const other = await mustCreate(store, aSession({ agent_id: "other" }));
    const failed = await change(store, other, ended("error", { last_error: "no \u0000 more" }));
    assert.equal(due, 3);
    const reopened = await reopen();
    const payloadsOf = async (id: string) =>
      (await deliveriesOf(reopened, id)).map((delivery) => webhookPayloadSchema.parse(payloadOf(delivery)));
    assert.deepEqual(
      (await payloadsOf(asks)).map(({ type, data }) => [type, data.session_id, data.ask?.question_id]),
      [["session.asks", owned.session.session_id, question.question_id]],
    );
    const [failure, end, ask] = await payloadsOf(all);
    const ids = { session_id: owned.session.session_id, agent_id: "asker", moniker: owned.session.moniker };
    const { question_id, text, choices, schema, about, asked_at } = question;
    assert.deepEqual(ask?.data, {
      ...ids,
      status: "waiting",
      ask: { question_id, text, choices, schema, about, asked_at },
    });
    assert.deepEqual(end?.data, { ...ids, status: "done", stop_reason: null, result: { z: [1], a: "\u0000" } });
    assert.deepEqual(
      [failure?.type, failure?.data.error, failure?.data.status],
      ["session.failed", "no \u0000 more", "error"],
    );
    assert.equal(failure?.timestamp, failed.session.updated_at);
  });

  test("a session that continues after its end reports the next one, and asks again what it still asks", async ({
    store,
  }) => {
    const { webhook_id } = await store.webhooks.put(aWebhook());
    const question = aQuestion("and now?");
    const owned = await mustCreate(store);
    const { session } = await change(store, owned, {
      status: "stopped",
      stop_reason: "max_steps",
      question,
      ended_at: aTime(),
    });
    const again = await store.claimSession({ worker: owned.owner.worker, session_id: session.session_id });
    assert.ok(again);
    const asking = await change(store, again, { status: "waiting", stop_reason: null, ended_at: null });
    const stopping = await change(store, asking, { status: "stopping" });
    await change(store, stopping, ended("stopped", { stop_reason: "destroyed" }));
    const events = (await deliveriesOf(store, webhook_id)).map(({ event, stop_reason }) => [event, stop_reason]);
    assert.deepEqual(events.toReversed(), [
      ["session.ended", "max_steps"],
      ["session.asks", null],
      ["session.ended", "destroyed"],
    ]);
  });

  test("a commit that is fenced leaves no delivery", async ({ store }) => {
    const { webhook_id } = await store.webhooks.put(aWebhook());
    const owned = await mustCreate(store);
    const session = { ...owned.session, ...ended("done") };
    const outcome = await store.commit({
      sessions: [{ kind: "update", session, owner: { ...owned.owner, epoch: 99 } }],
    });
    assert.equal(outcome.kind, "fenced");
    assert.deepEqual(await deliveriesOf(store, webhook_id), []);
  });

  test("large values are left out of deliveries", async ({ store }) => {
    const { webhook_id } = await store.webhooks.put(aWebhook());
    const text = "x".repeat(20_000);
    await change(store, await mustCreate(store), { status: "waiting", question: aQuestion(text, { about: { text } }) });
    await change(store, await mustCreate(store), ended("done", { result: { text } }));
    await change(store, await mustCreate(store), ended("error", { last_error: text }));
    const deliveries = await deliveriesOf(store, webhook_id);
    assert.equal(deliveries.length, 3);
    for (const delivery of deliveries) {
      const payload = payloadOf(delivery);
      assert.equal(payload.data.is_truncated, true, payload.type);
      assert.ok(JSON.stringify(payload).length < 5000, payload.type);
    }
  });

  test("a session's deliveries are claimed one after the other, each by one claimer, and those of others beside them", async ({
    store,
  }) => {
    await store.webhooks.put(aWebhook({ webhook_id: "w" }));
    let owned = await mustCreate(store);
    owned = await change(store, owned, { status: "waiting", question: aQuestion("1") });
    owned = await change(store, owned, { question: aQuestion("2") });
    await change(store, owned, ended("done"));
    await change(store, await mustCreate(store), ended("done"));
    const claims = await Promise.all([claimAll(store), claimAll(store)]);
    const [first, other] = claims.flat();
    assert.equal(claims.flat().length, 2);
    assert.ok(first && other);
    assert.equal(first.question?.text, "1");
    await store.webhooks.settle(settledAs(first, "pending", { next_attempt_at: LATER, last_error: "no" }));
    assert.deepEqual(await store.webhooks.claim({ now: aTime(), most: 9, busy: new Map() }), [], "the first one waits");
    const [again] = await claimAll(store);
    assert.equal(again?.delivery_id, first.delivery_id);
    await store.webhooks.settle(settledAs(again, "delivered"));
    const [second] = await claimAll(store);
    assert.equal(second?.question?.text, "2");
    await store.webhooks.settle(settledAs(second, "given_up"));
    const [third] = await claimAll(store);
    assert.equal(third?.event, "session.ended");
    await store.webhooks.settle(settledAs(other, "delivered"));
    assert.deepEqual(await claimAll(store), []);
  });

  test("no more are claimed for a webhook than it may have under way", async ({ store }) => {
    for (const webhook_id of ["a", "b"]) await store.webhooks.put(aWebhook({ webhook_id }));
    for (let session = 0; session < 5; session += 1) await change(store, await mustCreate(store), ended("done"));
    const claimed = await store.webhooks.claim({ now: LATER, most: 3, busy: new Map([["a", 2]]) });
    const counts = Map.groupBy(claimed, ({ webhook }) => webhook.webhook_id);
    assert.deepEqual([counts.get("a")?.length, counts.get("b")?.length], [1, 3]);
  });

  test("claims end with the process", async ({ store, reopen }) => {
    await store.webhooks.put(aWebhook());
    await change(store, await mustCreate(store), ended("done"));
    const [claimed] = await claimAll(store);
    assert.deepEqual(await claimAll(store), []);
    assert.deepEqual(await claimAll(await reopen()), [claimed]);
  });

  test("a delivery that ended can be sent again, is listed newest first in pages, and is removed after its time", async ({
    store,
  }) => {
    const { webhook_id } = await store.webhooks.put(aWebhook());
    for (let session = 0; session < 5; session += 1) await change(store, await mustCreate(store), ended("done"));
    const claimed = await claimAll(store);
    for (const delivery of claimed) await store.webhooks.settle(settledAs(delivery, "given_up"));
    const listed = await deliveriesOf(store, webhook_id);
    assert.deepEqual(
      listed.map(({ delivery_id }) => delivery_id),
      claimed.map(({ delivery_id }) => delivery_id).toReversed(),
    );
    const after = listed[1]?.delivery_id ?? "";
    assert.deepEqual(await store.webhooks.listDeliveries({ webhook_id, after, limit: 2 }), listed.slice(2, 4));
    const [chosen] = claimed;
    assert.ok(chosen);
    const sent = await store.webhooks.sendAgain(chosen.delivery_id, { now: aTime(), retry_until: LATER });
    assert.deepEqual([sent?.status, sent?.ended_at, sent?.attempts], ["pending", null, 1]);
    assert.deepEqual(await claimAll(store), [sent]);
    assert.equal(await store.webhooks.sendAgain("none", { now: aTime(), retry_until: LATER }), null);
    assert.equal(await store.webhooks.removeEnded("2000-01-01T00:00:00.000Z"), 0);
    assert.equal(await store.webhooks.removeEnded(LATER), 4);
    assert.deepEqual(await deliveriesOf(store, webhook_id), [sent]);
  });

  test("a webhook that is removed takes its deliveries along, also one that is under way", async ({
    store,
    reopen,
  }) => {
    const { webhook_id } = await store.webhooks.put(aWebhook());
    const kept = await store.webhooks.put(aWebhook());
    await change(store, await mustCreate(store), ended("done"));
    const [delivery] = (await claimAll(store)).filter((one) => one.webhook_id === webhook_id);
    assert.ok(delivery);
    assert.equal(await store.webhooks.remove(webhook_id), true);
    assert.equal(await store.webhooks.remove(webhook_id), false);
    await store.webhooks.settle(settledAs(delivery, "delivered"));
    await change(store, await mustCreate(store), ended("done"));
    const reopened = await reopen();
    assert.equal(await reopened.webhooks.getDelivery(delivery.delivery_id), null);
    await reopened.webhooks.put(aWebhook({ webhook_id }));
    assert.deepEqual(await deliveriesOf(reopened, webhook_id), []);
    assert.equal((await deliveriesOf(reopened, kept.webhook_id)).length, 2);
  });

  test("while webhooks come and go, each that was there all along receives every end once", async ({ store }) => {
    const { webhook_id } = await store.webhooks.put(aWebhook());
    const coming = Array.from({ length: 5 }, () => newId());
    await Promise.all([
      ...Array.from({ length: 30 }, async () => change(store, await mustCreate(store), ended("done"))),
      ...coming.map(async (id) => {
        await store.webhooks.put(aWebhook({ webhook_id: id }));
        await store.webhooks.remove(id);
      }),
    ]);
    const sessions = new Set((await deliveriesOf(store, webhook_id)).map(({ session_id }) => session_id));
    assert.equal(sessions.size, 30);
    for (const id of coming) assert.deepEqual(await deliveriesOf(store, id), []);
  });
}
