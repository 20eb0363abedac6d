import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ServerProcess } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { FORMATS, KEY, Listener, modelAt, newLlm, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import { type Answer, reply } from "./model-server.ts";

const SECRET_SUBJECT = "a-subject-that-is-nobodys-business";
/** A careless provider: its error repeats the key. */
const repeatsKey =
  (status: number): Answer =>
  (call) =>
    call.fail(status, { error: { message: `${call.key} is not liked`, headers: { ...call.headers } as never } });

describe("the key of a model", () => {
  const server = sharedModelServer();

  for (const format of FORMATS)
    test(`goes with its own calls and no others (${format})`, TIMEOUT, async () => {
      server().otherwise(reply("Done."));
      const keys = ["sk-of-ada", "sk-of-ben", "sk-of-cyd"];
      const models = keys.map((key) => newLlm(modelAt(server(), format, key)));
      const calls = Array.from({ length: 30 }, (_, index) => index % keys.length);
      await Promise.all(
        calls.map(async (who) =>
          models[who]?.summarize(`This is the business of ${keys[who]}.`, "briefly", new Listener()),
        ),
      );
      assert.equal(server().calls.length, calls.length);
      for (const call of server().calls) {
        assert.ok(keys.includes(call.key ?? ""));
        assert.equal(call.said("user"), `This is the business of ${call.key}.`);
      }
    });

  test("is not sent at all where there is none", TIMEOUT, async () => {
    server().otherwise(reply("Done."));
    await newLlm({ ...modelAt(server()), key: undefined }).summarize("Some text.", "briefly", new Listener());
    assert.equal(server().calls[0]?.key, null);
    assert.equal(server().calls[0]?.headers.authorization, undefined);
  });
});

describe("a server with a model", () => {
  const model = sharedModelServer();

  test(
    "writes neither key nor prompt into its log, its answers or its data, whatever the provider says",
    TIMEOUT,
    async () => {
      model().will(repeatsKey(500), repeatsKey(429), reply('{"text": "A joke."}'), repeatsKey(401));
      await using server = await ServerProcess.start({
        EVERSTEP_MODEL: "openai/test",
        OPENAI_BASE_URL: model().url,
        OPENAI_API_KEY: KEY,
        EVERSTEP_LOG_LEVEL: "trace",
      });
      const world = await World.of(server);
      const options = { step_interval_ms: 0, retry: { max_attempts: 3, backoff_ms: 1 } };
      const { session_id } = await world.api.create("joke", { params: { subject: SECRET_SUBJECT }, options });
      const session = await world.status(session_id, "error");
      assert.match(session.last_error ?? "", /^model_auth: /);
      assert.equal(session.iteration, 0);
      assert.equal(model().calls.length, 4);
      assert.ok(model().calls.every(({ key }) => key === KEY));
      const steps = await world.api.steps(session_id);
      world.close();
      await server.stop();
      const logged = server.stdout + server.stderr;
      assert.match(logged, /a step failed and will be retried/, "the failures are in the log");
      assert.ok(!logged.includes(SECRET_SUBJECT), "the prompt is in the log");
      assert.equal(steps.length, 2);
      for (const text of [
        logged,
        JSON.stringify(session),
        JSON.stringify(steps),
        await everyByteOf(join(server.folder, "data")),
      ])
        assert.ok(!text.includes(KEY), text.slice(Math.max(0, text.indexOf(KEY) - 200), text.indexOf(KEY) + 50));
    },
  );
});

async function everyByteOf(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  assert.ok(files.length > 0);
  return (await Promise.all(files.map((file) => readFile(file, "latin1")))).join("\n");
}
