import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { sharedModelServer } from "../llm/llm-fixture.ts";
import { failing, reply } from "../llm/model-server.ts";
import { Api, pathOf, problemOf } from "./api.ts";
import { everstep } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

describe("a server with models", () => {
  const model = sharedModelServer();
  let server: ServerProcess;
  let api: Api;
  before(async () => {
    const environment = { EVERSTEP_MODEL: "openai/first", OPENAI_BASE_URL: model().url, OPENAI_API_KEY: "sk-1" };
    server = await ServerProcess.start(environment);
    api = new Api(server.url);
  });
  after(() => server[Symbol.asyncDispose]());
  const ONE_STEP = { max_steps: 1, step_interval_ms: 0 };

  test("refuses a session whose model is unknown or lacks its key, wherever that is said", TIMEOUT, async () => {
    const refused: [options: JsonObject, path: string, message: RegExp][] = [
      [{ model: "nobody/x" }, "options.model", /the providers are openai/],
      [{ model: "gpt-5" }, "options.model", /provider\/model/],
      [{ model: "anthropic/claude" }, "options.model", /ANTHROPIC_API_KEY/],
      [{ fallback_models: ["openai/x", "google/y"] }, "options.fallback_models.1", /GOOGLE_API_KEY/],
      [{ model_settings: { temperature: 9 } }, "options.model_settings.temperature", /./],
    ];
    for (const [options, path, message] of refused) {
      const problem = problemOf(await api.post("/api/agents", { agent_id: "a", moniker: "joke", options }), 400);
      const [error] = problem.errors ?? [];
      assert.equal(error?.path.replace(/^payload\./, ""), path);
      assert.match(error?.message ?? "", message);
    }
    const config = { moniker: "joke", options: { model: "anthropic/claude" } };
    problemOf(await api.put(pathOf("agents", "a", "config"), config), 400);
    const { session_id } = await api.create("count", { params: { to: 1 } });
    problemOf(await api.post(pathOf("sessions", session_id, "resume"), { options: { model: "nobody/x" } }), 400);
  });

  test("asks the session's own model, with its settings", TIMEOUT, async () => {
    model().otherwise(reply('{"text": "A joke."}'));
    const own = { model: "openai/second", model_settings: { temperature: 0.1, max_output_tokens: 50 } };
    const { session_id } = await api.create("joke", { options: { ...ONE_STEP, ...own } });
    await eventually("the joke", async () => (await api.session(session_id)).status === "stopped");
    const { body } = model().calls[0] ?? assert.fail("no model was asked");
    assert.deepEqual([body["model"], body["temperature"], body["max_tokens"]], ["second", 0.1, 50]);
    const [step] = await api.steps(session_id);
    assert.equal(step?.calls[0]?.name, "openai/second");
  });

  test(
    "that is killed again and again while its provider is down holds no session, and all continue",
    TIMEOUT,
    async () => {
      model().otherwise(failing(503));
      const retry = { max_attempts: 1, backoff_ms: 50 };
      const created = await Promise.all(
        Array.from({ length: 10 }, () => api.create("joke", { options: { ...ONE_STEP, retry } })),
      );
      const sessions = () => Promise.all(created.map(({ session_id }) => api.session(session_id)));
      const since = new Map<string, string | undefined>();
      for (let kill = 0; kill < 6; kill++) {
        const started = new Date().toISOString();
        // Each was attempted since the start and waits again, so a kill may hit the next attempt or the wait.
        await eventually("an attempt of each", async () =>
          (await sessions()).every(({ retry_at }) => retry_at !== null && retry_at > started),
        );
        for (const { session_id, started_attempt } of await sessions()) {
          const begun = started_attempt?.outage_since;
          assert.equal(since.get(session_id) ?? begun, begun, "it is one outage");
          since.set(session_id, begun);
          assert.equal(started_attempt?.attempts, 0, "an attempt that met the outage ended in order");
        }
        await server.kill();
        await server.start();
      }
      model().otherwise(reply('{"text": "A joke."}'));
      await eventually("the end", async () => (await sessions()).every(({ status }) => status === "stopped"));
      for (const { pause_reason, last_error, iteration } of await sessions())
        assert.deepEqual([pause_reason, last_error, iteration], [null, null, 0]);
    },
  );

  test("shows on the command line until when a session waits for the provider", TIMEOUT, async () => {
    model().will(failing(429, { error: { message: "slow down" } }, { "retry-after": "60" }));
    const { session_id } = await api.create("joke", { options: ONE_STEP });
    await eventually("the wait", async () => (await api.session(session_id)).retry_at !== null);
    const listed = await everstep(["ps", "--url", server.url]);
    assert.match(listed.stdout, /waiting for the provider until \d\d:\d\d:\d\d UTC/);
    const logged = await everstep(["logs", session_id, "--url", server.url]);
    assert.match(logged.stderr, /waiting for the provider until .* slow down/);
  });
});
