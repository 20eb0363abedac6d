import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { STOP_PROMPT } from "../../src/domain/stop-prompt.ts";
import type { ModelCall } from "../llm/model-call.ts";
import { failing, ModelServer, reply } from "../llm/model-server.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";
import { echoing, modelEnvironment } from "./model-environment.ts";
import { RawClient } from "./raw-client.ts";

describe("the one chat with a model", () => {
  let model: ModelServer;
  let world: World;
  before(async () => {
    model = await ModelServer.open();
    world = await World.of(await ServerProcess.start(modelEnvironment(model)));
  });
  beforeEach(() => model.clear());
  after(async () => {
    world.close();
    await world.server.finish();
    await model[Symbol.asyncDispose]();
  });
  const open = () => RawClient.open(world.server.url);
  /** Replies in several pieces, so that it streams. */
  const finish = async (call: ModelCall, text: string): Promise<void> => call.reply(text, { piece: 6, every_ms: 5 });

  test("streams the answer while the model still writes it, and reports the tokens at its end", TIMEOUT, async () => {
    using client = await open();
    client.ask("Tell me a tale.", { request_id: "tale" });
    const call = await model.next();
    call.say("Once upon");
    assert.deepEqual(await client.next(), { type: "event_text_chunk", text: "Once upon", request_id: "tale" });
    call.say(' a time 😀 "there" was.');
    call.end({ input: 100, output: 11 });
    const rest = await client.answer({ request_id: "tale" });
    assert.deepEqual([rest.text, rest.tokens_used], [' a time 😀 "there" was.', 111]);
  });

  test("does not mention the tools used before the answer", TIMEOUT, async () => {
    using client = await open();
    model.will((call) => {
      const name = call.tools.find((tool) => /^files.{1,2}write$/.test(tool.name))?.name ?? "";
      call.turn({ calls: [{ id: "1", name, args: '{"path": "a.md", "text": "hidden"}' }] });
    }, reply("Done."));
    const { text, tokens_used } = await client.say("Write a file.");
    assert.deepEqual([text, tokens_used], ["Done.", 300]);
  });

  test("answers each of many connections with its own answer, one after the other", TIMEOUT, async () => {
    model.otherwise(echoing);
    const clients = await Promise.all(Array.from({ length: 6 }, open));
    const answers = await Promise.all(
      clients.map((client, at) => client.say(`Question ${at}.`, { request_id: `r${at}` })),
    );
    for (const client of clients) client[Symbol.dispose]();
    assert.deepEqual(
      answers.map(({ text }) => text),
      answers.map((_, at) => `Answer to: Question ${at}.`),
    );
  });

  test("answers with the reason if the model refuses the key, and the next question as usual", TIMEOUT, async () => {
    using client = await open();
    model.will(failing(401));
    assert.match((await client.say("Question one.", { request_id: "one" })).text, /^I could not answer that: .*401/);
    model.otherwise(echoing);
    assert.equal((await client.say("Question two.", { request_id: "two" })).text, "Answer to: Question two.");
  });

  /** Asks a question; the model's first call breaks after "Half of", and the second gives a different answer. */
  const askedTwice = async (client: RawClient, tagged: { request_id: string; accepts?: string[] }): Promise<void> => {
    client.ask("Question one.", tagged);
    const call = await model.next();
    call.say("Half of");
    const { request_id } = tagged;
    assert.deepEqual(await client.next(), { type: "event_text_chunk", text: "Half of", request_id });
    call.cut();
    await finish(await model.next(), "Another beginning and its end.");
  };

  test(
    "tells clients that support restarts that the answer starts over, and then sends all of it",
    TIMEOUT,
    async () => {
      using client = await open();
      await askedTwice(client, { request_id: "one", accepts: ["event_restart"] });
      assert.deepEqual(await client.next(), { type: "event_restart", request_id: "one" });
      assert.equal((await client.answer({ request_id: "one" })).text, "Another beginning and its end.");
      model.otherwise(echoing);
      assert.equal((await client.say("Question two.")).text, "Answer to: Question two.");
    },
  );

  test(
    "gives clients that do not support restarts the whole answer in one piece once it is complete",
    TIMEOUT,
    async () => {
      using client = await open();
      await askedTwice(client, { request_id: "one" });
      assert.deepEqual((await client.answer({ request_id: "one" })).chunks, ["\n\nAnother beginning and its end."]);
      model.otherwise(echoing);
      assert.equal((await client.say("Question two.")).text, "Answer to: Question two.");
    },
  );

  test("continues if an answer starts over with the same words", TIMEOUT, async () => {
    using client = await open();
    client.ask("Question one.");
    const call = await model.next();
    call.say("Half of");
    assert.deepEqual(await client.next(), { type: "event_text_chunk", text: "Half of" });
    call.cut();
    await finish(await model.next(), "Half of the answer.");
    assert.deepEqual((await client.answer()).chunks, [" the answer."]);
  });

  const stop = async ({ session_id }: RawClient): Promise<void> => {
    const guidance = { guidance: STOP_PROMPT, mode: "now" };
    assert.equal((await world.api.post(`/api/sessions/${session_id}/interrupt`, guidance)).status, 202);
  };

  test("is stopped in the middle of an answer without asking the model for anything", TIMEOUT, async () => {
    using client = await open();
    client.ask("Tell me a tale.", { accepts: ["event_restart"] });
    const call = await model.next();
    call.say("Once upon");
    assert.deepEqual(await client.next(), { type: "event_text_chunk", text: "Once upon" });
    await stop(client);
    await call.left;
    assert.deepEqual([(await client.answer()).text, model.calls.length], ["Stopped.", 1]);
    model.otherwise(echoing);
    assert.equal((await client.say("And now?")).text, "Answer to: And now?");
    assert.equal(model.calls.length, 2);
  });

  test("is stopped while it waits for approval of a tool call, and every call has its result", TIMEOUT, async () => {
    using client = await open();
    model.will((call) => {
      const name = call.tools.find((tool) => tool.name.endsWith("ask"))?.name ?? "";
      const calls = ["1", "2"].map((id) => ({ id, name, args: '{"question": "Which?"}' }));
      call.turn({ calls });
    });
    assert.match((await client.say("Ask me.")).text, /Which\?/);
    await stop(client);
    await world.session(client.session_id, ({ question, status }) => question === null && status === "waiting");
    assert.equal(model.calls.length, 1);
    model.otherwise(echoing);
    assert.equal((await client.say("And now?")).text, "Answer to: And now?");
    const results = model.calls
      .at(-1)
      ?.results.slice(-2)
      .map(({ text }) => text);
    assert.deepEqual(results, [
      "Stopped by a person; whether it took effect is not known.",
      "Not made: a person stopped it.",
    ]);
  });

  test("keeps what others say to the chat apart from the answers", TIMEOUT, async () => {
    using client = await open();
    const { session_id } = client;
    const accepted = await world.api.post(`/api/sessions/${encodeURIComponent(session_id)}/interrupt`, {
      guidance: "From elsewhere.",
    });
    assert.equal(accepted.status, 202);
    const theirs = await model.next();
    client.ask("My question.");
    theirs.say("For elsewhere");
    const { session_id: id } = client;
    await world.session(id, ({ pending_guidance }) => pending_guidance.length === 2);
    theirs.say(".");
    theirs.end();
    await finish(await model.next(), "For you.");
    assert.equal((await client.answer()).text, "For you.");
  });

  test("resumes the chat if somebody paused it", TIMEOUT, async () => {
    using client = await open();
    await world.control(client.session_id, "pause");
    model.otherwise(echoing);
    assert.equal((await client.say("Are you there?")).text, "Answer to: Are you there?");
  });
});
