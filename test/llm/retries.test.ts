import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SessionOptions } from "../../src/domain/session.ts";
import { sharedLlmWorld, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import { type Answer, failing, reply } from "./model-server.ts";

const GOOD = reply('{"text": "A joke about tea."}');
const ONE_STEP: SessionOptions = { max_steps: 1, retry: { max_attempts: 3, backoff_ms: 1, outage_s: 0 } };

describe("a step whose model call fails", () => {
  const server = sharedModelServer();
  const world = sharedLlmWorld(server, { limits: { first_token_ms: 300, reply_ms: 2000 } });
  const joke = (options: SessionOptions = ONE_STEP) => world().create("joke", { params: { subject: "tea" }, options });

  const HELPFUL: [code: string, answer: Answer][] = [
    ["rate_limited", failing(429)],
    ["provider_down", failing(503)],
    ["provider_down", (call) => call.cut()],
    ["provider_down", () => {}],
    ["provider_down", failing(504)],
    ["bad_output", reply("")],
  ];
  for (const [index, [code, answer]] of HELPFUL.entries())
    test(`with ${code} is tried again and then committed once (${index})`, TIMEOUT, async () => {
      server().will(answer, answer, GOOD);
      const session_id = await joke();
      const session = await world().untilStatus(session_id, "stopped", "error");
      assert.equal(session.status, "stopped", session.last_error ?? "");
      assert.deepEqual(
        (await world().steps(session_id)).map(({ status, text, iteration }) => [status, text, iteration]),
        [["ok", "A joke about tea.", 0]],
      );
      assert.equal(server().calls.length, 3);
    });

  const HELPLESS: [code: string, answers: Answer[]][] = [
    ["model_auth", [failing(401)]],
    ["model_rejected", [failing(400)]],
    ["reply_too_long", [reply('{"text": "A joke ab', { finish: "length" })]],
    ["bad_output", [reply("no"), reply("still no")]],
  ];
  for (const [code, answers] of HELPLESS)
    test(`with ${code} is not tried again; the session keeps the error until it is resumed`, TIMEOUT, async () => {
      server().will(...answers);
      const session_id = await joke();
      const session = await world().untilStatus(session_id, "stopped", "error");
      assert.match(session.last_error ?? "", new RegExp(`^${code}: `));
      assert.equal(server().calls.length, answers.length);
      const [failed] = await world().steps(session_id);
      assert.deepEqual([failed?.status, failed?.error], ["error", session.last_error]);
      server().will(GOOD);
      await world().do("agent_resume", session_id);
      assert.equal((await world().untilStatus(session_id, "stopped", "error")).status, "stopped");
    });

  test("as often as it may, ends in an error with the last reason", TIMEOUT, async () => {
    server().otherwise(failing(500));
    const session = await world().untilStatus(await joke(), "stopped", "error");
    assert.match(session.last_error ?? "", /^provider_down: .*500/);
    assert.equal(server().calls.length, 3);
  });

  test("waits as long as the provider asks, even if its own delay is shorter", TIMEOUT, async () => {
    server().will(failing(429, {}, { "retry-after": "1" }), GOOD);
    const session_id = await joke();
    await server().next();
    const refused = performance.now();
    await server().next();
    assert.ok(performance.now() - refused >= 950, `${performance.now() - refused} ms`);
    await world().untilStatus(session_id, "stopped");
  });

  test("counts the tokens of the attempt that was committed, repairs included", TIMEOUT, async () => {
    server().will(
      failing(500),
      reply("no", { usage: { input: 10, output: 5 } }),
      reply('{"text": "Tea!"}', { usage: { input: 20, output: 7 } }),
    );
    const session_id = await joke();
    assert.equal((await world().untilStatus(session_id, "stopped")).tokens_used, 42);
    assert.equal((await world().steps(session_id))[0]?.tokens_used, 42);
  });

  test("ends the session where the tokens are spent", TIMEOUT, async () => {
    server().otherwise(reply('{"text": "Tea!"}', { usage: { input: 60, output: 40 } }));
    const session_id = await joke({ max_tokens: 250, step_interval_ms: 0 });
    const session = await world().untilStatus(session_id, "stopped");
    assert.deepEqual([session.stop_reason, session.iteration, session.tokens_used], ["max_tokens", 2, 300]);
  });
});
