import assert from "node:assert/strict";
import { test } from "node:test";
import { answerFromText } from "../src/domain/answer.ts";
import type { JsonValue } from "../src/domain/json.ts";

const FORM = {
  type: "object",
  properties: {
    n: { type: "integer" },
    ok: { type: "boolean" },
    tags: { type: "array", items: { type: "string", enum: ["a", "b"] } },
    note: { type: "string" },
  },
};
const CHOICES = [{ value: "2", label: "Two" }, { value: "yes", label: "Do it" }, { value: { at: 9 } }];

const cases: [
  what: string,
  question: { choices?: typeof CHOICES; schema?: object },
  text: string,
  answer: JsonValue,
][] = [
  ["a choice by its value, before numbers", { choices: CHOICES }, "2", "2"],
  ["a choice by its label, whatever its letter case", { choices: CHOICES }, "do IT", "yes"],
  ["a choice by its number", { choices: CHOICES }, "3", { at: 9 }],
  ["no choice: as it is, for the server to refuse", { choices: CHOICES }, "7", "7"],
  [
    "fields as words",
    { schema: FORM },
    "n=3 ok=yes tags=a,b note=x = y n/a",
    { n: 3, ok: true, tags: ["a", "b"], note: "x = y n/a" },
  ],
  ["fields as JSON", { schema: FORM }, ' {"n": 3}', { n: 3 }],
  [
    "the only field without its name",
    { schema: { type: "object", properties: { n: { type: "number" } } } },
    "2.5",
    { n: 2.5 },
  ],
  ["a number that is none stays text", { schema: FORM }, "n=many", { n: "many" }],
  ["plain text", {}, " as it is ", " as it is "],
];

for (const [what, { choices, schema }, text, expected] of cases)
  test(`an answer that was typed: ${what}`, () => {
    const question = { choices: choices ?? null, schema: (schema as Record<string, JsonValue> | undefined) ?? null };
    assert.deepEqual(answerFromText(question, text), expected);
  });
