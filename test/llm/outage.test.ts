import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type Model, readNamedModel } from "../../src/monikers/llm/model.ts";
import { ProviderGate } from "../../src/monikers/llm/provider-gate.ts";
import { Listener, modelAt, newLlm, sharedLlmWorld, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import { type Answer, failing, reply } from "./model-server.ts";

const SESSIONS = 100;
/** Seconds for which the provider is down; EVERSTEP_OUTAGE_S=300 runs the full five minutes. */
const OUTAGE_S = Number(process.env["EVERSTEP_OUTAGE_S"] ?? 3);
const STEPS = 6;

/** The ways in which a provider is down, one after another. */
const DOWN: Answer[] = [
  failing(503),
  failing(500, "<html>"),
  (call) => call.cut(),
  failing(529),
  async (call) => {
    call.say('{"text": "Half of');
    await wait(5);
    call.cut();
  },
  failing(429, {}, { "retry-after": "1" }),
];

describe("a provider that is down in the midst of many sessions", () => {
  const server = sharedModelServer();
  const world = sharedLlmWorld(server);

  test(`for ${OUTAGE_S} s ends none of ${SESSIONS}: all go on by themselves, and no step is doubled`, {
    timeout: 180_000 + OUTAGE_S * 2000,
  }, async (t) => {
    const good = reply('{"text": "A joke about tea."}');
    const answered = new Set<string>();
    let calls = 0;
    // Each session completes its first step and then hits the outage, however fast it or the others are.
    server().otherwise((call) => {
      const subject = /tea-\d+/.exec(call.prompt)?.[0] ?? assert.fail("the prompt names the subject");
      if (answered.size < answered.add(subject).size) return good(call);
      return DOWN[calls++ % DOWN.length]?.(call);
    });
    const options = { max_steps: STEPS, step_interval_ms: 20, retry: { max_attempts: 1, backoff_ms: 50 } };
    const ids = await Promise.all(
      Array.from({ length: SESSIONS }, (_, index) =>
        world().create("joke", { params: { subject: `tea-${index}` }, options }),
      ),
    );
    await Promise.all(ids.map((session_id) => world().until(session_id, ({ last_error }) => last_error !== null)));
    await wait(OUTAGE_S * 1000);
    const during = await Promise.all(ids.map((session_id) => world().session(session_id)));
    assert.ok(
      during.every(
        ({ status, iteration, last_error }) => status === "running" && iteration === 0 && last_error !== null,
      ),
      "all of them are in the midst of it",
    );
    server().otherwise(good);
    t.diagnostic(`${calls} calls met the outage`);
    for (const session_id of ids) {
      const session = await world().untilStatus(session_id, "stopped", "error");
      assert.deepEqual([session.status, session.stop_reason, session.last_error], ["stopped", "max_steps", null]);
      const rows = await world().steps(session_id);
      assert.deepEqual(
        rows.map(({ status, iteration }) => [status, iteration]),
        Array.from({ length: STEPS }, (_, iteration) => ["ok", iteration]),
      );
    }
  });
});

describe("a provider that asks to wait", () => {
  const server = sharedModelServer();
  const world = sharedLlmWorld(server);

  test(
    "is not called earlier by any session with its key, and a waiting session takes up no slot",
    TIMEOUT,
    async () => {
      server().will(failing(429, {}, { "retry-after": "2" }));
      server().otherwise(reply('{"text": "A joke."}'));
      const options = { max_steps: 1, retry: { max_attempts: 1, backoff_ms: 1 } };
      const create = () => world().create("joke", { params: { subject: "tea" }, options });
      const first = await create();
      await world().until(first, ({ retry_at }) => retry_at !== null);
      const refused = performance.now();
      const others = await Promise.all(Array.from({ length: 20 }, create));
      for (const session_id of others) {
        const { last_error } = await world().until(session_id, ({ retry_at }) => retry_at !== null);
        assert.match(last_error ?? "", /^rate_limited: the provider of openai\/test asks to wait until/);
      }
      assert.equal(server().calls.length, 1, "the others did not call");
      assert.equal(world().runtime.describe().running_steps, 0, "who waits holds no place");
      await server().next();
      await server().next();
      assert.ok(performance.now() - refused > 1500, `${performance.now() - refused} ms`);
      for (const session_id of [first, ...others])
        assert.equal((await world().untilStatus(session_id, "stopped", "error")).status, "stopped");
    },
  );

  test("lets others be called that have another key", TIMEOUT, async () => {
    const gate = new ProviderGate();
    const ask = (key: string) =>
      newLlm(modelAt(server(), "openai", key), { parts: { gate } }).generate(
        { instructions: "", messages: [{ role: "user", text: "Hi." }] },
        new Listener(),
      );
    server().will(failing(429, {}, { "retry-after": "600" }), reply("Yes."));
    await assert.rejects(ask("one"), { code: "rate_limited", outage: true });
    await assert.rejects(ask("one"), { code: "rate_limited", message: /asks to wait until/ });
    assert.equal((await ask("another")).message.text, "Yes.");
    assert.equal(server().calls.length, 2);
  });
});

describe("fallback models", () => {
  const server = sharedModelServer();
  const request = { instructions: "", messages: [{ role: "user" as const, text: "Hi." }] };
  const [first, second] = ["openai/first", "openai/second"];
  const models = (): [Model, ...Model[]] => {
    const environment = { OPENAI_BASE_URL: server().url };
    return [readNamedModel(first, environment), readNamedModel(second, environment)];
  };

  for (const [name, failure] of [
    ["is down", failing(503)],
    ["asks to wait", failing(429, {}, { "retry-after": "600" })],
    ["does not know the model", failing(404)],
    ["refuses the key", failing(401)],
  ] as [string, Answer][])
    test(`answer where the first ${name}, and the record says which did`, TIMEOUT, async () => {
      server().will(failure, reply("Yes."));
      // The second has another key, as at another provider, so that a wait for one does not apply to the other.
      const [one, other] = models();
      const apart: [Model, ...Model[]] = [one, { ...(other as Model), key: "another" }];
      const listener = new Listener();
      const { model, message } = await newLlm(apart).generate(request, listener);
      assert.deepEqual([model, message.text], [second, "Yes."]);
      assert.deepEqual(
        listener.calls.map((call) => [call.name, call.error === undefined]),
        [
          [first, false],
          [second, true],
        ],
      );
    });

  test("are not asked after a refusal, a reply that is too long, or a request that is too large", TIMEOUT, async () => {
    for (const answer of [
      reply("No.", { finish: "refusal" }),
      reply("Once upon a ti", { finish: "length" }),
      failing(400, { error: { message: "prompt is too long: 9 tokens > 8 maximum" } }),
    ]) {
      server().clear();
      server().will(answer);
      await assert.rejects(newLlm(models()).generate(request, new Listener()), { retryable: false });
      assert.equal(server().calls.length, 1);
    }
  });

  test("are used first for a while if the first broke off within its answer", TIMEOUT, async () => {
    const llm = newLlm(models());
    const listener = new Listener();
    const broken = llm.generate(request, listener);
    const call = await server().next();
    call.say("Half of");
    await listener.heard("Half of");
    call.cut();
    await assert.rejects(broken, { code: "provider_down", outage: true });
    assert.equal(server().calls.length, 1, "two answers in one would be worse");
    server().will(reply("The whole."));
    assert.equal((await llm.generate(request, new Listener())).model, second);
  });

  test("that fail too leave the failure that is worth waiting for", TIMEOUT, async () => {
    server().will(failing(404), failing(503));
    await assert.rejects(newLlm(models()).generate(request, new Listener()), { code: "provider_down", outage: true });
    server().will(failing(404), failing(401));
    await assert.rejects(newLlm(models()).generate(request, new Listener()), { code: "model_rejected" });
  });

  test("also answer a step by the model alone", TIMEOUT, async () => {
    server().will(failing(503), reply('{"text": "Yes."}'));
    const listener = new Listener();
    const frame = await newLlm(models()).runStep({ step: "0", state: {} }, "Answer.", listener);
    assert.equal(frame.text, "Yes.");
    assert.deepEqual(
      listener.calls.map(({ name }) => name),
      [first, second],
    );
  });
});
