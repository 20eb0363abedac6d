import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { inspect } from "node:util";
import type { Llm } from "../../src/monikers/llm/llm.ts";
import { StepError } from "../../src/monikers/moniker.ts";
import { FORMATS, KEY, Listener, modelAt, newLlm, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import type { ModelCall } from "./model-call.ts";
import { type Answer, failing, reply } from "./model-server.ts";
import type { WireFormatName } from "./wire-formats.ts";

const LIMITS = { first_token_ms: 400, reply_ms: 2500 };
/** A step by the model alone, and a turn: two libraries, and the same errors. */
const WAYS: [name: string, format: WireFormatName, ask: (llm: Llm, listener: Listener) => Promise<string>][] = [
  ...FORMATS.map((format): (typeof WAYS)[number] => [
    `a step in the wire format of ${format}`,
    format,
    async (llm, listener) => (await llm.runStep({ step: "0", state: {} }, "Some task.", listener)).text ?? "",
  ]),
  ...(["openai", "responses", "anthropic", "google"] as const).map((format): (typeof WAYS)[number] => [
    `a turn in the wire format of ${format}`,
    format,
    async (llm, listener) => {
      const request = { instructions: "Be brief.", messages: [{ role: "user" as const, text: "Some text." }] };
      return (await llm.generate(request, listener)).message.text;
    },
  ]),
];
/** What a model writes so that a step's text and a turn's are the same. */
const written = (name: string, text: string): string => (name.startsWith("a step") ? JSON.stringify({ text }) : text);

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
  ["401", failing(401), "model_auth", false],
  ["403", failing(403), "model_auth", false],
  ["429", failing(429), "rate_limited", true],
  ["529", failing(529), "rate_limited", true],
  ["400", failing(400), "model_rejected", false],
  ["404", failing(404), "model_rejected", false],
  ["422", failing(422), "model_rejected", false],
  ["413", failing(413), "context_too_large", false],
  ["408", failing(408), "provider_down", true],
  ["504", failing(504), "provider_down", true],
  ["500", failing(500), "provider_down", true],
  ["502 with a page", failing(502, "<html>Bad Gateway</html>", { "content-type": "text/html" }), "provider_down", true],
  ["503", failing(503), "provider_down", true],
  [
    "something that is no stream",
    failing(200, "Hello?", { "content-type": "text/event-stream" }),
    "provider_down",
    true,
  ],
  ["a connection that is cut before the head", (call) => call.cut(), "provider_down", true],
  ["a connection that is cut within the text", saysAndThen((call) => call.cut()), "provider_down", true],
  ["a stream that ends within the text", saysAndThen((call) => call.stop()), "provider_down", true],
  ["silence before the head", () => {}, "provider_down", true],
  ["silence after the head", (call) => call.begin(), "provider_down", true],
  ["silence within the text", saysAndThen(() => {}), "provider_down", true],
  ["nothing but signs of life", onlyPings, "provider_down", true],
  ["a text that does not end", keepsTalking, "provider_down", true],
  ["an error within the stream", saysAndThen((call) => call.tellError()), "provider_down", true],
  ["a text that is cut at its length limit", reply("Once upon a ti", { finish: "length" }), "reply_too_long", false],
  ["a refusal", reply("I cannot help with that.", { finish: "refusal" }), "model_refused", false],
];

/** How the providers say that a request is too large for the model. */
const TOO_LARGE = [
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
  "Your input exceeds the context window of this model. Please adjust your input and try again.",
  "prompt is too long: 210011 tokens > 200000 maximum",
  "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000",
  "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
  "the request exceeds the available context size. try increasing the context size or enable context shift",
  "This endpoint's maximum context length is 131072 tokens.",
  "Please reduce the length of the messages or completion.",
];

async function failureOf(work: Promise<unknown>): Promise<StepError> {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof StepError, String(error));
    return error;
  }
  return assert.fail("it went well");
}

for (const [way, format, ask] of WAYS)
  describe(way, () => {
    const server = sharedModelServer();
    // A gate of its own each time, since one that was told to wait would wait.
    const complete = (listener = new Listener()) =>
      ask(newLlm(modelAt(server(), format), { limits: LIMITS }), listener);

    for (const [name, answer, code, retryable] of FAILURES)
      test(
        `that is answered ${name} fails with ${code}, ${retryable ? "to be" : "not to be"} tried again`,
        TIMEOUT,
        async () => {
          server().will(answer);
          const error = await failureOf(complete());
          const { message, outage } = error;
          assert.deepEqual({ code: error.code, retryable: error.retryable }, { code, retryable }, message);
          assert.equal(outage, code === "provider_down" || code === "rate_limited", "what passes is an outage");
          assert.equal(server().calls.length, 1, "it is asked once");
        },
      );

    test("to a provider that is not there fails with provider_down", TIMEOUT, async () => {
      const nobody = newLlm({ ...modelAt(server(), format), base_url: "http://127.0.0.1:9" });
      const { code, outage } = await failureOf(ask(nobody, new Listener()));
      assert.deepEqual({ code, outage }, { code: "provider_down", outage: true });
    });

    test("that is too large for the model fails with context_too_large, however that is said", TIMEOUT, async () => {
      for (const message of TOO_LARGE) {
        server().will(failing(400, { error: { message } }));
        const { code, retryable } = await failureOf(complete());
        assert.deepEqual({ code, retryable }, { code: "context_too_large", retryable: false }, message);
      }
    });

    test("says which setting lets the model write more", TIMEOUT, async () => {
      server().will(reply("Once upon a ti", { finish: "length" }));
      assert.match((await failureOf(complete())).message, /options\.model_settings\.max_output_tokens/);
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
        server().will(reply(written(way, words), { piece: 5, every_ms: 100 }));
        const started = performance.now();
        assert.equal(await complete(), words);
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
      const why = "a reply of 12 tokens is too short";
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
        for (const text of [error.message, String(error.stack), inspect(error, { depth: 10 })])
          assert.ok(!text.includes(KEY), text);
      }
    });
  });
