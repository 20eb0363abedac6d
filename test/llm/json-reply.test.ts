import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { objectIn, withoutThoughts } from "../../src/monikers/llm/json-reply.ts";
import { randomFor } from "../store/random.ts";
import { randomObject } from "../store/random-state.ts";
import { writeObject } from "./written-object.ts";

const objectOf = (reply: string) => objectIn(withoutThoughts(reply));
const FRAME = { text: 'He said "{hi}", then left.', state: { list: [1, { text: "x" }] }, done: false };
const WRITTEN = JSON.stringify(FRAME, null, 2);

const FOUND: [name: string, reply: string][] = [
  ["alone", WRITTEN],
  ["with white space around it", `\n\n  ${WRITTEN}  \n`],
  ["in a fence", `\`\`\`json\n${WRITTEN}\n\`\`\``],
  ["in a fence without a language", `\`\`\`\n${WRITTEN}\n\`\`\``],
  ["in a fence on one line", `\`\`\`json\n${JSON.stringify(FRAME)}\`\`\``],
  ["in a fence between remarks", `Here it is:\n\`\`\`json\n${WRITTEN}\n\`\`\`\nAnything else?`],
  ["after a remark", `Certainly! ${WRITTEN}`],
  ["before a remark", `${WRITTEN}\nI hope that this helps.`],
  ["after thoughts", `<think>\nA frame {"text": "draft"} perhaps.\n</think>\n${WRITTEN}`],
  ["after thoughts whose beginning was left out", `So {"text": "draft"} is wrong.</think>\n${WRITTEN}`],
  ["after thoughts, in a fence", `<think>hm</think>\n\`\`\`json\n${WRITTEN}\n\`\`\``],
  ["in a list of one", `[${WRITTEN}]`],
  ["with trailing commas", WRITTEN.replaceAll(/\n(\s*)([}\]])/g, ",\n$1$2")],
];

describe("the object in a model's reply", () => {
  for (const [name, reply] of FOUND) test(`is found ${name}`, () => assert.deepEqual(objectOf(reply), FRAME, reply));

  test("is exactly what was written, whatever its keys and values are", (context) => {
    const random = randomFor(context);
    for (let round = 0; round < 500; round++) {
      const object = randomObject(random);
      const { text } = writeObject(object, random);
      assert.deepEqual(objectOf(text), JSON.parse(text), text);
      assert.deepEqual(objectOf(`Well:\n\`\`\`json\n${text}\n\`\`\``), JSON.parse(text), text);
    }
  });

  test("keeps what looks like thoughts, fences or commas inside its strings", () => {
    for (const text of ["<think>no</think> yes", "a </think> b", "```js\nx\n```", "[1,]", "{,}", '",}']) {
      const object = { text, state: { note: text } };
      assert.deepEqual(objectOf(JSON.stringify(object)), object);
      assert.deepEqual(objectOf(`\`\`\`json\n${JSON.stringify(object)}\n\`\`\``), object);
      assert.deepEqual(objectOf(JSON.stringify(object).replace(/}$/, ",}")), object, "with a trailing comma");
    }
  });

  test("may have bare newlines and tabs in its strings", () => {
    assert.deepEqual(objectOf('{"text": "one\ntwo\tthree", "done": true}'), { text: "one\ntwo\tthree", done: true });
  });

  const NOT_FOUND = [
    "",
    "   ",
    "Hello.",
    "[]",
    '[{"text": "x"}, {"text": "y"}]',
    '"text"',
    "null",
    "12",
    '{"text": "cut o',
    '{"text": "x"',
    '{"text": "x"} {"text": "y"}',
    "{'text': 'x'}",
    '<think>perhaps {"text": "x"}',
    "}{",
  ];
  for (const reply of NOT_FOUND) test(`is none in ${JSON.stringify(reply)}`, () => assert.equal(objectOf(reply), null));

  test("of a megabyte is read, repaired or reported as broken in a fraction of a second", () => {
    const large = JSON.stringify({
      state: { list: Array.from({ length: 20_000 }, (_, id) => ({ id, note: "a, ]b" })) },
    });
    const started = performance.now();
    assert.ok(objectOf(large));
    assert.ok(objectOf(large.replace(/}$/, ",}")));
    assert.equal(objectOf(large.slice(0, -10)), null);
    assert.equal(objectOf(`{"text": "${"x".repeat(1_000_000)}`), null);
    assert.ok(performance.now() - started < 3000, `${performance.now() - started} ms`);
  });
});

describe("a reply without its reasoning", () => {
  test("is the rest of it", () => {
    assert.equal(withoutThoughts("<think>a\nb</think>The sum is 4."), "The sum is 4.");
    assert.equal(withoutThoughts("The sum is 4."), "The sum is 4.");
    assert.equal(withoutThoughts("<think>for ever"), "");
  });
});
