import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { GrowingFields } from "../../src/monikers/llm/growing-text.ts";
import { type Random, randomFor } from "../store/random.ts";
import { randomObject } from "../store/random-state.ts";
import { valueWithin, type WrittenObject, writeObject } from "./written-object.ts";

const ROUNDS = 400;
const TEXTS = [
  "",
  "a",
  "Ёлка",
  "😀",
  "👩‍👩‍👧",
  "\ud83d",
  "\ude00",
  '"',
  "\\",
  "\n\t\u0000",
  "\u2028",
  '{"text":"x"}',
  "}],:",
  "lorem / ipsum",
];

/** Reads a reply that grows to each of these lengths in turn, and returns what was emitted of each field. */
function read(reply: string, lengths: Iterable<number>, look?: (texts: Map<string, string>, length: number) => void) {
  const texts = new Map<string, string>();
  const fields = new GrowingFields((key, piece) => texts.set(key, (texts.get(key) ?? "") + piece));
  for (const length of lengths) {
    fields.update(reply.slice(0, length));
    look?.(texts, length);
  }
  return texts;
}
const everyLength = (reply: string): number[] => Array.from({ length: reply.length + 1 }, (_, index) => index);
const textIn = (reply: string): string => read(reply, everyLength(reply)).get("text") ?? "";

/** An object with `text` among its fields, and also nested, where it does not count. */
function someObject(random: Random): JsonObject {
  const others = Object.entries(randomObject(random)).filter(([key]) => key !== "text" && key !== "__proto__");
  const nested: [string, JsonObject] = ["state", { text: "not this", deeper: [{ text: "nor this" }] }];
  const text: [string, string] = ["text", Array.from({ length: random.below(5) }, () => random.pick(TEXTS)).join("")];
  return Object.fromEntries(random.shuffled([...others, nested, text]));
}

function assertTold(texts: Map<string, string>, { fields }: WrittenObject, length: number, reply: string): void {
  for (const field of fields)
    assert.equal(texts.get(field.key) ?? "", valueWithin(field, length), `${field.key} at ${length} of ${reply}`);
}

describe("the fields of a reply that grows", () => {
  test("are emitted as far as they are certain, wherever the reply is cut", (context) => {
    const random = randomFor(context);
    for (let round = 0; round < ROUNDS; round++) {
      const written = writeObject(someObject(random), random);
      const look = (texts: Map<string, string>, length: number) => assertTold(texts, written, length, written.text);
      assert.equal(written.fields.filter(({ key }) => key === "text").length, 1);
      read(written.text, everyLength(written.text), look);
    }
  });

  test("are the same however large the pieces are in which the reply comes", (context) => {
    const random = randomFor(context);
    for (let round = 0; round < ROUNDS; round++) {
      const written = writeObject(someObject(random), random);
      const lengths = [...everyLength(written.text)].filter(() => random.chance(0.1));
      assertTold(read(written.text, [...lengths, written.text.length]), written, written.text.length, written.text);
    }
  });

  const BEFORE = [
    "\n \n",
    "Here you are:\n",
    '"Certainly", he said, and "more" was to come.\n',
    'A screen of 24" is large.\n',
    "```json\n",
    "See [1] and [2, 3]: ",
    "It is over :-] or not :} so: ",
    '<think>Is it {"text": "a draft"} or [1, {"text": "another"}]?</think>\n',
    "<think></think>",
  ];
  for (const prose of BEFORE)
    test(`are found after ${JSON.stringify(prose)}`, (context) => {
      const random = randomFor(context);
      for (let round = 0; round < 50; round++) {
        const written = writeObject(someObject(random), random, prose.length);
        const reply = prose + written.text;
        read(reply, everyLength(reply), (texts, length) => assertTold(texts, written, length, reply));
      }
    });

  test("end with their object: nothing after it is emitted", () => {
    assert.equal(textIn('{"text": "one"} and {"text": "two"}'), "one");
    assert.equal(textIn('```json\n{"text": "one"}\n```\n"text": "two" {"text": "three"}'), "one");
  });

  test("are none in a list, in a string, or in thoughts that never end", () => {
    assert.equal(textIn('[{"text": "x"}]'), "");
    assert.equal(textIn('"{\\"text\\": \\"x\\"}"'), "");
    assert.equal(textIn('<think>perhaps {"text": "x"}'), "");
  });

  test("are told once, however often the same reply is given", () => {
    const pieces: string[] = [];
    const fields = new GrowingFields((_, piece) => pieces.push(piece));
    for (const reply of ['{"text":"a', '{"text":"a', '{"text":"ab', '{"text":"ab"}', '{"text":"ab"}'])
      fields.update(reply);
    assert.deepEqual(pieces, ["a", "b"]);
  });

  test("of a megabyte that comes in ten thousand pieces take a fraction of a second", () => {
    const reply = JSON.stringify({ tool: "reply", text: "lorem ipsum ".repeat(90_000) });
    const started = performance.now();
    const lengths = Array.from({ length: 10_000 }, (_, index) => Math.ceil((reply.length * (index + 1)) / 10_000));
    assert.equal(read(reply, lengths).get("text")?.length, 12 * 90_000);
    assert.ok(performance.now() - started < 3000, `${performance.now() - started} ms`);
  });
});
