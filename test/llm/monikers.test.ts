import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Session } from "../../src/domain/session.ts";
import { FORMATS, type LlmWorld, sharedLlmWorld, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import { reply } from "./model-server.ts";

const LONG_TEXT = Array.from(
  { length: 120 },
  (_, at) => `Sentence ${at} tells about the harvest of tea in the hills.`,
).join(" ");

async function ran(world: LlmWorld, moniker: string, params: JsonObject) {
  const session_id = await world.create(moniker, { params });
  const session = await world.untilStatus(session_id, "done", "error");
  assert.equal(session.status, "done", session.last_error ?? "");
  return { session, steps: await world.steps(session_id) };
}

const resultOf = ({ result }: Session): string =>
  typeof result === "string" ? result : assert.fail(`the result is no text: ${JSON.stringify(result)}`);

async function writeNotes(world: LlmWorld): Promise<void> {
  await mkdir(join(world.workspace, "contexts"), { recursive: true });
  await writeFile(join(world.workspace, "contexts/harvest.md"), "# Harvest\nThe harvest of Ёлка tea began in March.\n");
  await writeFile(join(world.workspace, "other.md"), "Nothing of interest.\n");
}

for (const format of FORMATS)
  describe(`with a model (${format})`, () => {
    const server = sharedModelServer();
    const world = sharedLlmWorld(server, { format });

    test(
      "joke tells the model's jokes about its subject, which guidance changes, and keeps its own state",
      TIMEOUT,
      async () => {
        const session_id = await world().create("joke", {
          params: { subject: "tea" },
          options: { step_interval_ms: 0, max_steps: 2 },
        });
        const first = await server().next();
        assert.match(first.said("system"), /joke about "tea"/);
        const action_id = await world().tell(session_id, { subject: 'coffee "black"' });
        await world().delivered(action_id);
        await first.reply('{"text": "Tea!", "state": {"mine": true}, "done": true}');
        const second = await server().next();
        assert.match(second.said("system"), /joke about "coffee \\"black\\""/);
        assert.deepEqual(JSON.parse(second.said("user")), {
          step: "1",
          state: { subject: 'coffee "black"', told: 1, earlier: ["Tea!"] },
          guidance: [{ subject: 'coffee "black"' }],
        });
        await second.reply('{"text": "Coffee!"}', { usage: { input: 5, output: 6 } });
        const session = await world().untilStatus(session_id, "stopped");
        assert.deepEqual(session.context, { subject: 'coffee "black"', told: 2, earlier: ["Tea!", "Coffee!"] });
        assert.deepEqual(
          (await world().steps(session_id)).map(({ text, tokens_used }) => [text, tokens_used]),
          [
            ["Tea!", 150],
            ["Coffee!", 11],
          ],
        );
      },
    );

    test("summarize has the model sum up chunk after chunk, then the whole", TIMEOUT, async () => {
      server().otherwise((call) => call.reply(`Sum of ${call.said("user").length} characters.`));
      const { session, steps } = await ran(world(), "summarize", { text: LONG_TEXT });
      const chunks = (session.context["chunks"] as number | undefined) ?? 0;
      assert.ok(chunks > 1);
      assert.equal(steps.length, chunks);
      assert.equal(server().calls.length, chunks + 1);
      const partial = server().calls.slice(0, -1);
      assert.equal(partial.map((call) => call.said("user")).join(" "), LONG_TEXT, "no word of the text is left out");
      assert.deepEqual(
        session.context["picked"],
        partial.map((call) => `Sum of ${call.said("user").length} characters.`),
      );
      const whole = server().calls.at(-1)?.said("user") ?? "";
      assert.equal(whole, session.context["picked"].join("\n"));
      assert.deepEqual(session.result, `Sum of ${whole.length} characters.`);
      assert.equal(steps.at(-1)?.tokens_used, 300, "the last step made two calls");
    });

    test("summarize does not take reasoning for a summary", TIMEOUT, async () => {
      server().will(reply("<think>What is it about?</think>\n\nIt is about tea."));
      assert.equal((await ran(world(), "summarize", { text: "Tea is a drink." })).session.result, "It is about tea.");
    });

    test("research looks around with tools that only read, and answers in the model's words", TIMEOUT, async () => {
      await writeNotes(world());
      server().will((call) => {
        const name = call.tools.find((tool) => /files.*search/.test(tool.name))?.name ?? "";
        call.turn({ calls: [{ id: "1", name, args: '{"words": "ёлка"}' }] });
      }, reply("In March (contexts/harvest.md)."));
      const { session, steps } = await ran(world(), "research", { question: "When did the harvest of ёлка begin?" });
      assert.equal(session.result, "In March (contexts/harvest.md).");
      assert.deepEqual(
        steps.map(({ step_token }) => step_token),
        ["search/1", "act/1.1/files/search", "think/2"],
      );
      assert.match(server().calls[1]?.results[0]?.text ?? "", /harvest\.md:2: The harvest of Ёлка tea began in March/);
      assert.ok(!server().calls[0]?.tools.some(({ name }) => /write|start/.test(name)));
    });

    test("task runs any task by the model alone, a frame in and a frame out", TIMEOUT, async () => {
      server().will(
        reply('{"text": "one", "state": {"n": 1}, "next_step": "more", "done": false}'),
        reply('{"text": "two", "state": {"n": 2}, "next_step": "end", "done": true}'),
      );
      const { session, steps } = await ran(world(), "task", { task: "Count to two." });
      assert.deepEqual([session.result, session.context], ["two", { n: 2 }]);
      assert.deepEqual(
        steps.map(({ step_token, text }) => [step_token, text]),
        [
          ["0", "one"],
          ["more", "two"],
        ],
      );
      assert.match(server().calls[0]?.said("system") ?? "", /Count to two\./);
    });
  });

describe("without a model", () => {
  const world = sharedLlmWorld(null);

  test("joke tells jokes of its own about its subject", TIMEOUT, async () => {
    const session_id = await world().create("joke", {
      params: { subject: "tea" },
      options: { step_interval_ms: 0, max_steps: 3 },
    });
    await world().untilStatus(session_id, "stopped");
    const steps = await world().steps(session_id);
    assert.equal(steps.length, 3);
    for (const { text, tokens_used } of steps) assert.match(`${text} ${tokens_used}`, /tea.* 0$/);
  });

  test("summarize picks sentences of the text itself, a chunk per step", TIMEOUT, async () => {
    const { session, steps } = await ran(world(), "summarize", { text: LONG_TEXT });
    assert.ok(steps.length > 1);
    const sentences = resultOf(session).split(/(?<=\.)\s/);
    assert.ok(sentences.length > 1);
    for (const sentence of sentences) assert.ok(LONG_TEXT.includes(sentence), sentence);
    assert.ok(resultOf(session).length < LONG_TEXT.length / 4);
  });

  test("research quotes what it found with paths and lines, letter case and diacritics aside", TIMEOUT, async () => {
    await writeNotes(world());
    const { session } = await ran(world(), "research", { question: "When did the HARVEST of ёлка begin?" });
    assert.match(resultOf(session), /> The harvest of Ёлка tea began in March\.\n {2}\(contexts\/harvest\.md:2\)/);
    const nothing = await ran(world(), "research", { question: "Zebras?" });
    assert.match(resultOf(nothing.session), /says nothing about it/);
  });

  for (const moniker of ["agent", "task"])
    test(`${moniker} says that it has no model, and what the files say`, TIMEOUT, async () => {
      await writeNotes(world());
      const { session } = await ran(world(), moniker, { task: "Find out about the harvest." });
      assert.match(resultOf(session), /^No language model is configured/);
      assert.match(resultOf(session), /contexts\/harvest\.md/);
    });
});
