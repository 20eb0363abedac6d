import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Llm } from "../../src/monikers/llm/llm.ts";
import type { StepProgress } from "../../src/monikers/moniker.ts";
import { FORMATS, Listener, modelAt, newLlm, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import { reply } from "./model-server.ts";

const TEXT = 'Ёлка said: "😀 \\ / {} [] \n\t\u2028 end". 👩‍👩‍👧 <think>not a thought</think> ```js\nx\n```';
const FRAME = { text: TEXT, state: { text: "not this" }, done: false };

for (const format of FORMATS)
  describe(`the text of a model that speaks like ${format}`, () => {
    const server = sharedModelServer();
    let llm: Llm;
    before(() => {
      llm = newLlm(modelAt(server(), format));
    });
    const runStep = (listener: Listener) => llm.runStep({ step: "0", state: {} }, "Talk.", listener);

    for (const [name, written] of [
      ["alone", JSON.stringify(FRAME)],
      [
        "with its characters escaped",
        JSON.stringify(FRAME).replaceAll(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`),
      ],
      ["in a fence", `\`\`\`json\n${JSON.stringify(FRAME, null, 2)}\n\`\`\``],
      ["after thoughts", `<think>First {"text": "a draft"}.</think>${JSON.stringify(FRAME)}`],
      ["after its state", JSON.stringify({ state: FRAME.state, done: false, text: TEXT })],
    ] as const)
      test(`${name} is told while it grows, and joined is the frame's own`, TIMEOUT, async () => {
        server().will(reply(written, { piece: Math.ceil(written.length / 8), every_ms: 60 }));
        const listener = new Listener();
        assert.equal((await runStep(listener)).text, TEXT);
        assert.equal(listener.text, TEXT);
        assert.ok(listener.news.length > 2, "it came in several pieces");
      });

    test("is told before the model has ended", TIMEOUT, async () => {
      const listener = new Listener();
      const progress = Promise.withResolvers<StepProgress>();
      const step = llm.runStep({ step: "0", state: {} }, "Talk.", { signal: listener.signal, emit: progress.resolve });
      const call = await server().next();
      call.say('{"text": "Once upon a time');
      assert.deepEqual(await progress.promise, { kind: "delta", text: "Once upon a time" });
      call.say(' there was."}');
      call.end();
      assert.equal((await step).text, "Once upon a time there was.");
    });
  });

const ENOUGH = "This is a reply of more than one token, as anybody can see.";

describe("the tokens of a call", () => {
  const server = sharedModelServer();
  const models: Partial<Record<(typeof FORMATS)[number], Llm>> = {};
  const usageOf = async (
    format: (typeof FORMATS)[number],
    usage: { input: number; output: number } | null,
    text = ENOUGH,
  ) => {
    server().will(reply(text, { usage }));
    const listener = new Listener();
    const llm = (models[format] ??= newLlm(modelAt(server(), format)));
    await llm.summarize("x".repeat(400), "briefly", listener);
    assert.equal(listener.usage.length, 1);
    return listener.usage[0] ?? assert.fail("nothing was told of tokens");
  };

  for (const format of FORMATS) {
    test(`are the provider's own count where it gives one (${format})`, TIMEOUT, async () => {
      assert.deepEqual(await usageOf(format, { input: 1234, output: 77 }), { tokens: 1311, estimated: false });
      assert.deepEqual(await usageOf(format, { input: 9, output: 1 }, "Yes."), { tokens: 10, estimated: false });
    });

    test(`are estimated from what was said, and told to be, where it gives none (${format})`, TIMEOUT, async () => {
      const { tokens, estimated } = await usageOf(format, null);
      assert.equal(estimated, true);
      assert.ok(tokens > 100 && tokens < 200, `${tokens}`);
    });

    test(`are estimated where it counts one for a long reply (${format})`, TIMEOUT, async () => {
      assert.equal((await usageOf(format, { input: 1234, output: 1 })).estimated, true);
    });
  }

  test("are requested if a stream must be asked for them", TIMEOUT, async () => {
    await usageOf("openai", { input: 1, output: 2 });
    assert.deepEqual(server().calls[0]?.body["stream_options"], { include_usage: true });
  });
});
