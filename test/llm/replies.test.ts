import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Llm } from "../../src/monikers/llm/llm.ts";
import { FORMATS, Listener, modelAt, newLlm, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import { failing, reply } from "./model-server.ts";

const STATE = { count: 3, names: ["Ada", "Ёлка"], deep: { text: "within" } };
const IN = { step: "3", state: { count: 2 } };
const OUT = { text: "Three.", next_step: "4", state: STATE, done: false };
const WRITTEN = JSON.stringify(OUT);

for (const format of FORMATS)
  describe(`a step by a model that speaks like ${format}`, () => {
    const server = sharedModelServer();
    let llm: Llm;
    before(() => {
      llm = newLlm(modelAt(server(), format));
    });
    const runStep = (listener = new Listener(), frame: Parameters<Llm["runStep"]>[0] = IN) =>
      llm.runStep(frame, "Count the names.", listener);
    /** Runs a step whose reply needs no second call. */
    const readAtOnce = async (text: string) => {
      server().will(reply(text));
      const frame = await runStep();
      assert.equal(server().calls.length, 1, "it needed no repair");
      return frame;
    };

    test("is told the task, the frame and its guidance, and asked to stream", TIMEOUT, async () => {
      server().will(reply(WRITTEN));
      await runStep(new Listener(), { ...IN, guidance: ["look {{ frame }}", { text: "at `this`" }] });
      const [call] = server().calls;
      assert.ok(call?.isStream);
      assert.match(call.said("system"), /Count the names\./);
      assert.deepEqual(JSON.parse(call.said("user")), {
        ...IN,
        guidance: ["look {{ frame }}", { text: "at `this`" }],
      });
    });

    test("returns the frame that the model wrote, with the step's own token", TIMEOUT, async () => {
      assert.deepEqual(await readAtOnce(JSON.stringify({ ...OUT, step: "nonsense", data: [1], notes: "n" })), {
        ...OUT,
        step: "3",
        data: [1],
        notes: "n",
      });
    });

    const READABLE: [name: string, written: string][] = [
      ["in a fence", `\`\`\`json\n${WRITTEN}\n\`\`\``],
      ["after thoughts", `<think>\nIs {"text": "it", "state": {}} this?\n</think>\n\n${WRITTEN}`],
      [
        "with trailing commas",
        `{"text": "Three.", "next_step": "4", "state": ${JSON.stringify(STATE)}, "done": false,}`,
      ],
      ["between remarks", `Certainly!\n${WRITTEN}\nIs there more to do?`],
      ["with nulls for what it leaves out", JSON.stringify({ ...OUT, data: null, notes: null })],
    ];
    for (const [name, written] of READABLE)
      test(`reads a frame ${name} without asking again`, TIMEOUT, async () => {
        assert.deepEqual(await readAtOnce(written), { ...OUT, step: "3" });
      });

    test("keeps the old state, the old token and done as false if the model leaves them out", TIMEOUT, async () => {
      assert.deepEqual(await readAtOnce('{"text": "Hm."}'), {
        step: "3",
        next_step: "3",
        state: IN.state,
        text: "Hm.",
        done: false,
      });
      assert.deepEqual((await runWith({ text: "Hm.", state: {} })).state, {}, "an empty state is a state");
    });
    const runWith = async (frame: JsonObject) => {
      server().will(reply(JSON.stringify(frame)));
      return runStep();
    };

    const WRONG: [name: string, written: string, problem: RegExp][] = [
      ["no JSON", "I would rather not.", /it is not a JSON object/],
      ["a broken object", '{"text": "Three.", "state": {"count": ', /it is not a JSON object/],
      ["a list", "[1, 2]", /it is not a JSON object/],
      ["a state that is null", '{"text": "x", "state": null}', /state: /],
      ["a state that is a list", '{"text": "x", "state": []}', /state: /],
      ["a state that is a string", '{"text": "x", "state": "{}"}', /state: /],
      ["a text that is a number", '{"text": 3}', /text: /],
      ["a done that is a word", '{"text": "x", "done": "yes"}', /done: /],
    ];
    for (const [name, written, problem] of WRONG) {
      test(`sends ${name} back once, with what is wrong, and takes the corrected frame`, TIMEOUT, async () => {
        server().will(reply(written, { usage: { input: 10, output: 20 } }), reply(WRITTEN));
        const listener = new Listener();
        assert.deepEqual(await runStep(listener), { ...OUT, step: "3" });
        const [, repair] = server().calls;
        assert.match(repair?.said("system") ?? "", problem);
        assert.match(repair?.said("system") ?? "", /"text".*"state"/, "and what it should have been");
        assert.equal(repair?.said("user"), written.trim());
        assert.deepEqual(
          listener.usage.map(({ tokens }) => tokens),
          [30, 150],
          "both calls are paid for",
        );
      });

      test(`gives up where the correction of ${name} is no better`, TIMEOUT, async () => {
        server().will(reply(written), reply(written), reply(WRITTEN));
        await assert.rejects(runStep(), { code: "bad_output", retryable: false, message: problem });
        assert.equal(server().calls.length, 2, "it is asked once for a correction, and no more");
      });
    }

    for (const nothing of ["", " \n", "<think>I do not know.</think>"])
      test(
        `that gets ${JSON.stringify(nothing)} fails with bad_output, to be retried as a whole`,
        TIMEOUT,
        async () => {
          server().will(reply(nothing));
          const listener = new Listener();
          await assert.rejects(runStep(listener), { code: "bad_output", retryable: true });
          assert.equal(server().calls.length, 1, "there is nothing to correct");
          assert.equal(listener.usage.length, 1, "it is paid for all the same");
        },
      );

    test("whose correction fails, fails as that call did", TIMEOUT, async () => {
      server().will(reply("no"), failing(429));
      await assert.rejects(runStep(), { code: "rate_limited", retryable: true });
    });

    for (const [name, options] of [
      ["in one piece", {}],
      ["in small pieces", { piece: 512 }],
    ] as const)
      test(`returns a state of 200 KB that comes ${name} exactly as it was written`, TIMEOUT, async () => {
        const notes = Array.from({ length: 2000 }, (_, id) => ({
          id,
          note: `"Ёлка" ${"x".repeat(60)} \\ 😀\n`,
          at: id / 7,
        }));
        const state = JSON.parse(JSON.stringify({ notes, ["__proto__"]: { text: "not this" } })) as JsonObject;
        const written = JSON.stringify({ state, text: "So much 😀.", done: true, next_step: "end" });
        assert.ok(written.length > 200_000);
        server().will(reply(written, options));
        const listener = new Listener();
        const frame = await runStep(listener, { step: "3", state });
        assert.equal(JSON.stringify(frame.state), JSON.stringify(state));
        assert.equal(frame.text, "So much 😀.");
        assert.equal(listener.text, "So much 😀.");
        assert.equal(
          JSON.stringify(JSON.parse(server().calls[0]?.said("user") ?? "")),
          JSON.stringify({ step: "3", state }),
        );
      });
  });
