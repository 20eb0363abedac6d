import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, type TestContext, test } from "node:test";
import type { StoredDelivery, StoredWebhook } from "../../src/domain/webhook.ts";
import { newSigningSecret } from "../../src/signing/request-signer.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { type AttemptOutcome, Deliverer, type DelivererTuning } from "../../src/webhooks/deliverer.ts";
import { DeliveryAddresses } from "../../src/webhooks/delivery-addresses.ts";
import { eventually } from "../server/server-fixture.ts";
import { aSession, aTime, aWebhook, mustCommit, mustCreate } from "../store/fixtures.ts";
import { storeHome } from "../store-home.ts";
import { Receiver, verified } from "./receiver.ts";

type Scene = {
  store: Store;
  receiver: Receiver;
  deliverer: Deliverer;
  webhook: StoredWebhook;
  outcomes: AttemptOutcome[];
};

type SceneOptions = { tuning?: Partial<DelivererTuning>; allow?: string[]; url?: (receiver: Receiver) => string };

/** A deliverer on a real store, and a receiver that it may reach. */
async function scene(t: TestContext, { tuning, allow = ["127.0.0.1"], url }: SceneOptions = {}): Promise<Scene> {
  const home = await storeHome();
  const store = await openStore(home.store);
  const receiver = await Receiver.start();
  const outcomes: AttemptOutcome[] = [];
  const webhook = await store.webhooks.put(
    aWebhook({ webhook_id: "w", url: url?.(receiver) ?? receiver.url, secret: newSigningSecret() }),
  );
  const deliverer = new Deliverer(store.webhooks, {
    addresses: new DeliveryAddresses(allow),
    onAttempt: (outcome) => outcomes.push(outcome),
    tuning: { first_backoff_ms: 5, longest_backoff_ms: 40, poll_ms: 50, ...tuning },
  });
  deliverer.start();
  t.after(async () => {
    await receiver.kill();
    await deliverer.stop();
    await store.close();
    await home[Symbol.asyncDispose]();
  });
  return { store, receiver, deliverer, webhook, outcomes };
}

async function endSession(store: Store): Promise<string> {
  const owned = await mustCreate(store, aSession());
  const session = {
    ...owned.session,
    status: "done" as const,
    updated_at: new Date().toISOString(),
    ended_at: aTime(),
  };
  await mustCommit(store, { sessions: [{ kind: "update", session, owner: owned.owner }] });
  return session.session_id;
}

const only = async (store: Store): Promise<StoredDelivery> => {
  const [delivery, more] = await store.webhooks.listDeliveries({ webhook_id: "w", limit: 10 });
  assert.ok(delivery && !more);
  return delivery;
};

const untilStatus = (store: Store, status: StoredDelivery["status"]): Promise<StoredDelivery> =>
  eventually(`the delivery is ${status}`, async () => {
    const delivery = await only(store);
    return delivery.status === status && delivery;
  });

const untilTried = (store: Store, attempts = 1): Promise<StoredDelivery> =>
  eventually("the delivery was tried", async () => {
    const delivery = await only(store);
    return delivery.attempts >= attempts && delivery;
  });

function* endlessText(): Generator<string> {
  for (;;) yield "x".repeat(16_384);
}

describe("a delivery", () => {
  test("is signed as the package standardwebhooks verifies it, and by nothing else", async (t) => {
    const { store, receiver, webhook } = await scene(t);
    const session_id = await endSession(store);
    const [first] = await receiver.until("it arrives", ({ length }) => length === 1);
    assert.ok(first);
    const payload = verified(webhook.secret, first) as { type: string; data: { session_id: string } };
    assert.deepEqual([payload.type, payload.data.session_id], ["session.ended", session_id]);
    assert.throws(() => verified(newSigningSecret(), first));
    assert.throws(() => verified(webhook.secret, { ...first, body: `${first.body} ` }));
    const delivery = await untilStatus(store, "delivered");
    assert.deepEqual([delivery.delivery_id, delivery.attempts, delivery.response_status], [first.id, 1, 204]);
  });

  test("has signatures by the new and by the former secret after a rotation", async (t) => {
    const { store, receiver, webhook } = await scene(t);
    const secret = newSigningSecret();
    await store.webhooks.replaceSecret("w", { secret, former_until: new Date(Date.now() + 60_000).toISOString() });
    await endSession(store);
    const [first] = await receiver.until("it arrives", ({ length }) => length === 1);
    assert.ok(first && verified(secret, first) && verified(webhook.secret, first));
    await store.webhooks.replaceSecret("w", { secret: newSigningSecret(), former_until: new Date().toISOString() });
    await endSession(store);
    const [, second] = await receiver.until("the next arrives", ({ length }) => length === 2);
    assert.throws(() => second && verified(secret, second), "the former one counts no longer");
  });

  test("is tried again with the same id and body until the receiver takes it", async (t) => {
    const { store, receiver, outcomes } = await scene(t);
    const answers = [500, 429, 503, 404, 200];
    receiver.respond = (response) => void response.writeHead(answers.shift() ?? 200).end("x".repeat(100));
    await endSession(store);
    const received = await receiver.until("it was taken", ({ length }) => length === 5);
    assert.equal(new Set(received.map(({ id, body }) => id + body)).size, 1);
    const { attempts, last_error } = await untilStatus(store, "delivered");
    assert.deepEqual([attempts, last_error], [5, null]);
    assert.deepEqual(outcomes, ["failed", "failed", "failed", "failed", "delivered"]);
  });

  test("waits while the receiver is down, and arrives when it is back", async (t) => {
    const { store, receiver } = await scene(t);
    await receiver.kill();
    await endSession(store);
    const { last_error, response_status } = await untilTried(store, 2);
    assert.match(last_error ?? "", /ECONNREFUSED/);
    assert.equal(response_status, null);
    await receiver.listen();
    await receiver.until("it arrives", ({ length }) => length === 1);
    await untilStatus(store, "delivered");
  });

  test("to a receiver that hangs is ended after its time, and holds up no other webhook", async (t) => {
    const { store, receiver } = await scene(t, { tuning: { timeout_ms: 300 } });
    await using other = await Receiver.start();
    await store.webhooks.put(aWebhook({ webhook_id: "other", url: other.url }));
    receiver.respond = () => {};
    const count = 20;
    for (let session = 0; session < count; session += 1) await endSession(store);
    await other.until("the others arrive", ({ length }) => length === count);
    const tried = await eventually("one was ended", async () => {
      const deliveries = await store.webhooks.listDeliveries({ webhook_id: "w", limit: 100 });
      return deliveries.find(({ attempts }) => attempts > 0);
    });
    assert.equal(tried.last_error, "no response within 0.3 s");
  });

  test("is delivered by the status, however much more the receiver sends", async (t) => {
    const { store, receiver } = await scene(t, { tuning: { timeout_ms: 30_000 } });
    let isCut = false;
    receiver.respond = (response) => {
      response.writeHead(200);
      response.on("close", () => (isCut = true));
      Readable.from(endlessText())
        .on("error", () => {})
        .pipe(response);
    };
    await endSession(store);
    await untilStatus(store, "delivered");
    await eventually("the answer was cut", async () => isCut);
    assert.equal(receiver.received.length, 1);
  });

  test("does not follow a redirect", async (t) => {
    await using target = await Receiver.start();
    const { store, receiver } = await scene(t);
    receiver.respond = (response) => void response.writeHead(307, { location: target.url }).end();
    await endSession(store);
    const { last_error, response_status } = await untilTried(store);
    assert.deepEqual([response_status, last_error], [307, "the receiver answered 307; redirects are not followed"]);
    assert.equal(target.received.length, 0);
  });

  test("is given up, visibly, when it still fails after its time, and the next of its session follows", async (t) => {
    const { store, receiver, outcomes } = await scene(t);
    receiver.respond = (response) => void response.writeHead(500).end();
    let owned = await mustCreate(store);
    // It expired before it was sent, so it is attempted once.
    const long_ago = new Date(Date.now() - 25 * 3_600_000).toISOString();
    for (const status of ["error", "running", "done"] as const) {
      const session = {
        ...owned.session,
        status,
        updated_at: long_ago,
        ended_at: status === "running" ? null : aTime(),
      };
      await mustCommit(store, { sessions: [{ kind: "update", session, owner: owned.owner }] });
      const again = await store.claimSession({ worker: owned.owner.worker, session_id: session.session_id });
      if (again) owned = again;
    }
    const deliveries = await eventually("both are given up", async () => {
      const all = await store.webhooks.listDeliveries({ webhook_id: "w", limit: 10 });
      return all.every(({ status }) => status === "given_up") && all;
    });
    assert.deepEqual(
      deliveries.map(({ event, attempts, response_status, next_attempt_at, ended_at }) => [
        event,
        attempts,
        response_status,
        next_attempt_at,
        ended_at !== null,
      ]),
      [
        ["session.ended", 1, 500, null, true],
        ["session.failed", 1, 500, null, true],
      ],
    );
    assert.deepEqual(outcomes, ["given_up", "given_up"]);
    receiver.respond = (response) => void response.writeHead(200).end();
    const [newest] = deliveries;
    const retry_until = new Date(Date.now() + 60_000).toISOString();
    await store.webhooks.sendAgain(newest?.delivery_id ?? "", { now: new Date().toISOString(), retry_until });
    const received = await receiver.until("it is sent again", ({ length }) => length === 3);
    assert.equal(received.at(-1)?.id, newest?.delivery_id);
  });

  test("is given up at once if the receiver says that it is gone", async (t) => {
    const { store, receiver } = await scene(t);
    receiver.respond = (response) => void response.writeHead(410).end();
    await endSession(store);
    assert.equal((await untilStatus(store, "given_up")).attempts, 1);
  });

  test("waits as long as the receiver asks for", async (t) => {
    const { store, receiver } = await scene(t);
    receiver.respond = (response) => void response.writeHead(503, { "retry-after": "600" }).end();
    await endSession(store);
    const { next_attempt_at, last_attempt_at } = await untilTried(store);
    assert.equal(Date.parse(next_attempt_at ?? "") - Date.parse(last_attempt_at ?? ""), 600_000);
  });

  test("has growing waits that differ at random", async (t) => {
    const { store, receiver } = await scene(t, { tuning: { first_backoff_ms: 1000, longest_backoff_ms: 3_600_000 } });
    receiver.respond = (response) => void response.writeHead(500).end();
    await endSession(store);
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      const { delivery_id, next_attempt_at, last_attempt_at } = await untilTried(store, attempt);
      waits.push((Date.parse(next_attempt_at ?? "") - Date.parse(last_attempt_at ?? "")) / 2 ** (attempt - 1));
      const now = new Date().toISOString();
      await store.webhooks.sendAgain(delivery_id, { now, retry_until: "2999-01-01T00:00:00.000Z" });
    }
    for (const wait of waits) assert.ok(wait >= 800 && wait <= 1201, waits.join(", "));
    assert.ok(new Set(waits.map(Math.round)).size > 1, waits.join(", "));
  });

  test("that ended long ago is removed at the start", async (t) => {
    const { store, deliverer } = await scene(t);
    await endSession(store);
    const { delivery_id } = await untilStatus(store, "delivered");
    await deliverer.stop();
    const cleaner = new Deliverer(store.webhooks, {
      addresses: new DeliveryAddresses([]),
      tuning: { keep_ms: -1000 },
    });
    cleaner.start();
    t.after(() => cleaner.stop());
    await eventually("it is gone", async () => (await store.webhooks.getDelivery(delivery_id)) === null);
  });
});

describe("an address that is not public", () => {
  test("is refused when it is connected to", async (t) => {
    const { store, receiver } = await scene(t, { allow: [] });
    await endSession(store);
    assert.match((await untilTried(store)).last_error ?? "", /^webhook_address_refused: 127\.0\.0\.1 is 127\.0\.0\.1/);
    assert.equal(receiver.received.length, 0);
  });

  test("is refused behind a name, which is resolved again at every attempt", async (t) => {
    const { store, receiver } = await scene(t, { allow: [], url: ({ port }) => `http://localhost:${port}/hook` });
    await endSession(store);
    assert.match((await untilTried(store)).last_error ?? "", /^webhook_address_refused: localhost is /);
    assert.equal(receiver.received.length, 0);
  });

  test("is used where its network or its name is allowed", async (t) => {
    for (const allow of [["127.0.0.0/8", "::1"], ["LOCALHOST"]]) {
      const { store, receiver } = await scene(t, { allow, url: ({ port }) => `http://localhost:${port}/hook` });
      await endSession(store);
      await receiver.until(`it arrives with ${allow.join(", ")}`, ({ length }) => length === 1);
    }
  });
});
