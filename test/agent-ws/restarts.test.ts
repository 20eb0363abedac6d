import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Step } from "../../src/domain/step.ts";
import { ModelServer } from "../llm/model-server.ts";
import { Api } from "../server/api.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { echoing, modelEnvironment, wordsOf } from "./model-environment.ts";
import { RawClient } from "./raw-client.ts";

describe("the one chat across restarts of the server", () => {
  let model: ModelServer;
  let server: ServerProcess;
  before(async () => {
    model = await ModelServer.open();
    server = await ServerProcess.start(modelEnvironment(model));
  });
  beforeEach(() => model.clear());
  after(async () => {
    await server.finish();
    await model[Symbol.asyncDispose]();
  });
  const open = () => RawClient.open(server.url);
  const steps = (session_id: string): Promise<Step[]> => new Api(server.url).steps(session_id);

  test("is the same session and remembers, after kills and clean stops", TIMEOUT, async () => {
    model.otherwise(echoing);
    using first = await open();
    const { session_id } = first;
    const said: string[] = [];
    for (const end of ["kill", "stop", "kill"] as const) {
      using client = await open();
      assert.equal(client.session_id, session_id);
      const text = `Said before the ${end} number ${said.length}.`;
      assert.equal((await client.say(text)).text, `Answer to: ${text}`);
      said.push(text);
      await server[end]();
      await server.start();
    }
    using last = await open();
    assert.equal(last.session_id, session_id);
    await last.say("What did I say?");
    const texts = (model.calls.at(-1)?.messages ?? []).map(({ text }) => wordsOf(text));
    for (const text of said) assert.equal(texts[texts.indexOf(text) + 1], `Answer to: ${text}`);
    assert.deepEqual(
      (await steps(session_id)).map(({ iteration }) => iteration),
      [0, 1, 2, 3],
    );
  });

  test("closes its connections on a clean stop, and sends no partial answer", TIMEOUT, async () => {
    using client = await open();
    client.ask("Slowly, please.");
    const call = await model.next();
    call.say("Slow");
    assert.equal((await client.next()).type, "event_text_chunk");
    const stopped = server.stop();
    assert.equal(await client.closed, 1001);
    call.say("ly.");
    call.end();
    assert.equal((await stopped).code, 0);
    await server.start();
    assert.equal((await steps(client.session_id)).at(-1)?.text, "Slowly.", "the step in hand was finished and kept");
  });

  test("answers a question that was pending at a kill once, and only to its sender", TIMEOUT, async () => {
    using asker = await open();
    const { session_id } = asker;
    asker.ask("Asked before the kill.");
    const lost = await model.next();
    lost.say("Never told");
    assert.equal((await asker.next()).type, "event_text_chunk");
    await server.kill();
    await asker.closed;
    await server.start();
    const again = await model.next();
    using other = await open();
    other.ask("Asked after it.");
    again.say("For the one before");
    again.say(".");
    const world = await World.of(server);
    await world.session(session_id, ({ pending_guidance }) => pending_guidance.length === 2);
    world.close();
    again.end();
    await (await model.next()).reply("For the one after.", { piece: 9, every_ms: 20 });
    assert.equal((await other.answer()).text, "For the one after.");
    const lastSteps = (await steps(session_id)).slice(-2);
    assert.deepEqual(
      lastSteps.map(({ text }) => text),
      ["For the one before.", "For the one after."],
    );
    assert.deepEqual(
      lastSteps.map(({ guidance }) => (guidance as { text: string }[]).map(({ text }) => text)),
      [["Asked before the kill."], ["Asked after it."]],
    );
  });
});
