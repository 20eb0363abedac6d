import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { BamlEngine } from "../../src/monikers/llm/baml-engine.ts";
import { StepError } from "../../src/monikers/moniker.ts";
import { FORMATS, KEY, Listener, modelAt, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import type { ModelCall } from "./model-call.ts";
import { type Answer, failing, reply } from "./model-server.ts";

const LIMITS = { first_token_ms: 400, reply_ms: 2500 };
const PROMPT = { text: "Some text.", purpose: "briefly" };

const keepsTalking = async (call: ModelCall): Promise<void> => {
  while (!call.isOver) {
    call.say("more ");
    await wait(50);
  }
};
const onlyPings = async (call: ModelCall): Promise<void> => {
  while (!call.isOver) {
    call.write(": still here\n\n");
    await wait(50);
  }
};
const saysAndThen =
  (then: (call: ModelCall) => void): Answer =>
  async (call) => {
    call.say("Once upon");
    await wait(100);
    then(call);
  };

const FAILURES: [name: string, answer: Answer, code: string, retryable: boolean][] = [
  ["401", failing(401), "auth", false],
  ["403", failing(403), "auth", false],
  ["429", failing(429), "rate_limit", true],
  ["400", failing(400), "rejected", false],
  ["404", failing(404), "rejected", false],
  ["413", failing(413), "rejected", false],
  ["408", failing(408), "timeout", true],
  ["504", failing(504), "timeout", true],
  ["500", failing(500), "unavailable", true],
  ["502 with a page", failing(502, "<html>Bad Gateway</html>", { "content-type": "text/html" }), "unavailable", true],
  ["503", failing(503), "unavailable", true],
  ["529", failing(529), "unavailable", true],
  ["something that is no stream", failing(200, "Hello?", { "content-type": "text/event-stream" }), "unavailable", true],
  ["a connection that is cut before the head", (call) => call.cut(), "unavailable", true],
  ["a connection that is cut within the text", saysAndThen((call) => call.cut()), "unavailable", true],
  ["silence before the head", () => {}, "timeout", true],
  ["silence after the head", (call) => call.begin(), "timeout", true],
  ["silence within the text", saysAndThen(() => {}), "timeout", true],
  ["nothing but signs of life", onlyPings, "timeout", true],
  ["a text that does not end", keepsTalking, "timeout", true],
  ["a text that is cut at its length limit", reply("Once upon a ti", { finish: "length" }), "truncated", false],
];

/** An error that a stream itself tells, as each provider writes it. */
const ERROR_EVENTS = {
  openai: 'data: {"error": {"message": "The server had an error", "type": "server_error", "code": 500}}\n\n',
  anthropic:
    'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n',
};

async function failureOf(work: Promise<unknown>): Promise<StepError> {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof StepError, String(error));
    return error;
  }
  return assert.fail("it went well");
}

for (const format of FORMATS)
  describe(`a call in the wire format of ${format}`, () => {
    const server = sharedModelServer();
    let engine: BamlEngine | undefined;
    const complete = (listener = new Listener()) => {
      engine ??= new BamlEngine(modelAt(server(), format), LIMITS);
      return engine.complete("SummarizeText", PROMPT, listener);
    };

    for (const [name, answer, code, retryable] of FAILURES)
      test(
        `that is answered ${name} fails with ${code}, ${retryable ? "to be" : "not to be"} tried again`,
        TIMEOUT,
        async () => {
          server().will(answer);
          const error = await failureOf(complete());
          assert.deepEqual({ code: error.code, retryable: error.retryable }, { code, retryable }, error.message);
          assert.equal(server().calls.length, 1, "the engine itself tries once");
        },
      );

    test("that is told an error within the stream fails with unavailable", TIMEOUT, async () => {
      server().will(saysAndThen((call) => (call.write(ERROR_EVENTS[format]), call.stop())));
      const { code, retryable } = await failureOf(complete());
      assert.deepEqual({ code, retryable }, { code: "unavailable", retryable: true });
    });

    test("to a provider that is not there fails with unavailable", TIMEOUT, async () => {
      const model = modelAt(server(), format);
      const nobody = new BamlEngine({ ...model, options: { ...model.options, base_url: "http://127.0.0.1:9" } });
      const error = await failureOf(nobody.complete("SummarizeText", PROMPT, new Listener()));
      assert.deepEqual({ code: error.code, retryable: error.retryable }, { code: "unavailable", retryable: true });
    });

    test("knows how long the provider asks to wait", TIMEOUT, async () => {
      const ofHeader = async (header: string): Promise<number | undefined> => {
        server().will(failing(429, {}, { "retry-after": header }));
        return (await failureOf(complete())).retry_after_ms;
      };
      assert.equal(await ofHeader("7"), 7000);
      assert.equal(await ofHeader("86400"), 600_000, "no provider makes a step wait for a day");
      assert.equal(await ofHeader("soon"), undefined);
      assert.equal(await ofHeader("-5"), undefined);
      const date = (await ofHeader(new Date(Date.now() + 30_000).toUTCString())) ?? 0;
      assert.ok(date > 20_000 && date <= 30_000, `${date} ms`);
    });

    test(
      "that begins late but goes on is waited for, though the whole takes longer than its first word may",
      TIMEOUT,
      async () => {
        const words = "one two three four five six seven eight nine ten eleven ";
        server().will(reply(words, { piece: 5, every_ms: 100 }));
        const started = performance.now();
        assert.equal((await complete()).text, words);
        assert.ok(
          performance.now() - started > LIMITS.first_token_ms * 2,
          "it took longer than the watchdog allows for one word",
        );
      },
    );

    for (const [when, answer] of [
      ["before the head", () => {}],
      ["within the text", (call: ModelCall) => call.say("Once")],
    ] as const)
      test(`that is cancelled ${when} fails with cancelled and is not tried again`, TIMEOUT, async () => {
        server().will(answer);
        const listener = new Listener();
        const failure = failureOf(complete(listener));
        const call = await server().next();
        listener.controller.abort();
        const { code, retryable } = await failure;
        assert.deepEqual({ code, retryable }, { code: "cancelled", retryable: false });
        await call.left;
      });

    test("that is refused says why in the provider's own words, and briefly", TIMEOUT, async () => {
      const why = "this model's maximum context length is 8192 tokens";
      server().will(
        failing(400, { type: "error", error: { message: why } }),
        failing(400, { error: { message: "x".repeat(10_000) } }),
      );
      assert.equal((await failureOf(complete())).message, `the provider rejected the request (400): ${why}`);
      assert.ok((await failureOf(complete())).message.length < 1000);
    });

    test("that was cancelled before it began calls nobody", TIMEOUT, async () => {
      const listener = new Listener();
      listener.controller.abort(new Error("too late"));
      await assert.rejects(complete(listener), /too late/);
      assert.equal(server().calls.length, 0);
    });

    test("names no key in what it throws, though the provider repeats it", TIMEOUT, async () => {
      for (const status of [400, 401, 429, 500]) {
        server().will(
          failing(status, { error: { message: `your key is ${KEY}`, headers: { authorization: `Bearer ${KEY}` } } }),
        );
        const error = await failureOf(complete());
        const cause = error.cause as Error;
        for (const text of [
          error.message,
          String(error.stack),
          cause.message,
          String(cause.stack),
          JSON.stringify(error),
          JSON.stringify(cause),
        ])
          assert.ok(!text.includes(KEY), text);
      }
    });
  });
