import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asEdit, contentOf, LARGEST_CONTENT, sizeOf } from "../../src/surfaces/matrix/outgoing/content.ts";
import { toHtml } from "../../src/surfaces/matrix/outgoing/markdown.ts";
import { split } from "../../src/surfaces/matrix/outgoing/split.ts";
import { splitContent } from "../../src/surfaces/matrix/outgoing/split-content.ts";
import { globs } from "../../src/surfaces/matrix/text/globs.ts";
import { paramsFrom } from "../../src/surfaces/matrix/text/params-from.ts";
import { seededRandom } from "../store/seeded-random.ts";

const bytes = (text: string): number => Buffer.byteLength(text);

describe("long texts", () => {
  test("that fit are left as they are", () => {
    assert.deepEqual(split("a\n\n\n b  \n", 100), ["a\n\n\n b  \n"]);
  });

  test("are cut between paragraphs", () => {
    assert.deepEqual(split("one one\n\ntwo two\n\nthree", 16), ["one one\n\ntwo two", "three"]);
  });

  test("close and open again a block of code that is cut", () => {
    const parts = split("before\n\n~~~~js\nline one\n\nline two\nline three\n~~~~\nafter", 30);
    assert.deepEqual(parts, ["before", "~~~~js\nline one\n\nline two\n~~~~", "~~~~js\nline three\n~~~~\n\nafter"]);
  });

  test("are cut between words, and never inside a character", () => {
    assert.deepEqual(split("word word word", 10), ["word word ", "word"]);
    assert.deepEqual(split("😀😀😀", 9), ["😀😀", "😀"]);
  });

  test("keep every word and every limit, whatever is in them", () => {
    const random = seededRandom(7);
    const pieces = [
      "word ",
      "Ёлка ",
      "😀",
      "\n",
      "\n\n",
      "```\n",
      "~~~ts\n",
      "x".repeat(50),
      "\n```\n",
      "> quote\n",
      "  ",
    ];
    for (let round = 0; round < 300; round++) {
      const text = Array.from({ length: 120 }, () => pieces[random.integer(pieces.length)]).join("");
      const most = 60 + random.integer(300);
      const parts = split(text, most);
      for (const part of parts) assert.ok(bytes(part) <= most, `${bytes(part)} > ${most}`);
      const letters = (of: string) => of.replaceAll(/[\s`~]|ts$/gmu, "");
      assert.equal(letters(parts.join("\n")), letters(text), `round ${round}`);
    }
  });

  for (const [name, character] of [
    ["quotation marks", '"'],
    ["angles", "<"],
    ["emoji", "😀"],
    ["control characters", "\u0001"],
    ["stars", "*a*"],
  ] as const)
    test(`of nothing but ${name} fit into messages, also as edits`, () => {
      const contents = splitContent(character.repeat(40_000), { is_notice: false, reply_to: "$x" });
      for (const content of contents) assert.ok(sizeOf(asEdit(content, "$".padEnd(44))) <= LARGEST_CONTENT);
      assert.equal(
        contents
          .map(({ body }) => body)
          .join("")
          .replaceAll("\n", ""),
        character.repeat(40_000),
      );
      assert.equal(contents.filter((content) => content["m.relates_to"]).length, 1);
    });
});

describe("Markdown", () => {
  for (const [markdown, html] of [
    ["plain", null],
    ["two\nlines", null],
    ["**bold**", "<p><strong>bold</strong></p>"],
    ["`a < b`", "<p><code>a &lt; b</code></p>"],
    ["```ts\nlet a;\n```", '<pre><code class="language-ts">let a;\n</code></pre>'],
    ["<b onclick=x>hi</b> **b**", "<p>&lt;b onclick=x&gt;hi&lt;/b&gt; <strong>b</strong></p>"],
    ["[a](https://b.c)", '<p><a href="https://b.c">a</a></p>'],
    ["[a](javascript:alert)", "<p><a>a</a></p>"],
    ["[a](data:text/html,x)", "<p><a>a</a></p>"],
    ["~~s~~", "<p><del>s</del></p>"],
  ] as const)
    test(`${JSON.stringify(markdown)} becomes ${html}`, () => assert.equal(toHtml(markdown), html));

  test("shows a picture as nothing that loads", () => {
    assert.doesNotMatch(toHtml("![x](https://a.b/c.png) **b**") ?? "", /<img|src/);
  });

  test("half of an emoji is never sent", () => {
    const { body, formatted_body } = contentOf(`**a** ${"😀".slice(0, 1)}`, { is_notice: false });
    assert.ok(body.isWellFormed() && formatted_body?.isWellFormed());
  });
});

describe("who is allowed", () => {
  const CASES: [patterns: string, user: string, allowed: boolean][] = [
    ["@anna:example.org", "@anna:example.org", true],
    ["@anna:example.org", "@anna:example.orgx", false],
    ["@anna:example.org", "x@anna:example.org", false],
    ["@anna:example.org", "@anna:exampleXorg", false],
    ["@*:example.org", "@boris:example.org", true],
    ["@*:example.org", "@boris:example.com", false],
    ["@a:x, @b:y", "@b:y", true],
    ["@a:x @b:y", "@a:x", true],
    ["@team-?:x", "@team-1:x", true],
    ["@team-?:x", "@team-12:x", false],
    ["*", "@anyone:anywhere", true],
    ["", "@anyone:anywhere", false],
    [" , ", "@anyone:anywhere", false],
    ["@(a|b):x", "@a:x", false],
  ];
  for (const [patterns, user, allowed] of CASES)
    test(`${JSON.stringify(patterns)} ${allowed ? "lets" : "does not let"} ${user} in`, () =>
      assert.equal(globs(patterns)(user), allowed));
});

describe("the inputs of a session", () => {
  const CASES: [typed: string, params: object | null][] = [
    ["", {}],
    ["subject=tea", { subject: "tea" }],
    ["subject=black tea with milk count=3", { subject: "black tea with milk", count: 3 }],
    ['subject="a=b c=d" on=true', { subject: "a=b c=d", on: true }],
    ['list=[1, 2] text="say \\"hi\\""', { list: [1, 2], text: 'say "hi"' }],
    ["empty= next=1", { empty: "", next: 1 }],
    ["lines=one\ntwo", { lines: "one\ntwo" }],
    ["tea", null],
    ["tea subject=x", null],
    ["=x", null],
  ];
  for (const [typed, params] of CASES)
    test(`${JSON.stringify(typed)} are ${JSON.stringify(params)}`, () => assert.deepEqual(paramsFrom(typed), params));
});
