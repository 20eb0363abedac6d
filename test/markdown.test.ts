import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Marked } from "marked";
import { markdownToHtml } from "../src/markdown/markdown-to-html.ts";
import { readFolder } from "./repository-files.ts";

const depthOf = (html: string | null, tag: string): number => (html?.split(`<${tag}>`).length ?? 1) - 1;

describe("untrusted Markdown", () => {
  for (const [what, text] of Object.entries({
    quotes: `${"> ".repeat(10_000)}deep`,
    "quotes without spaces": `${">".repeat(10_000)}deep`,
    "quotes that go on without their marks": `${">".repeat(5000)}deep\n${"more\n".repeat(2000)}`,
    lists: `${"- ".repeat(10_000)}deep`,
    "numbered lists": `${"1. ".repeat(10_000)}deep`,
    "lists by their indent": Array.from({ length: 300 }, (_, depth) => `${"  ".repeat(depth)}- deep`).join("\n"),
    "quotes and lists in turn": `${"> - ".repeat(5000)}deep`,
    emphasis: `${"*a _b ".repeat(3000)}deep${" b_ a*".repeat(3000)}`,
    brackets: `${"[".repeat(20_000)}deep${"](x)".repeat(5000)}`,
    pictures: `${"![".repeat(10_000)}deep`,
  }))
    test(`shows thousands of ${what} inside each other without a fault, the innermost as written`, () => {
      const html = markdownToHtml(text);
      if (html !== null) assert.match(html, /deep/);
      for (const tag of ["blockquote", "ul", "ol", "em"]) assert.ok(depthOf(html, tag) <= 12, tag);
    });

  test("keeps ten quotes inside each other", () => {
    assert.equal(markdownToHtml(`${">".repeat(10)} a`)?.split("<blockquote>").length, 11);
    assert.equal(markdownToHtml(`${">".repeat(11)} a`)?.split("<blockquote>").length, 1);
  });

  test("is shown as written if it is very long", () => {
    assert.equal(markdownToHtml("**a** ".repeat(20_000)), null);
  });

  test("a paragraph that takes too long to read is shown as written, the others are not", () => {
    const html = markdownToHtml(`**one**\n\n${"*a_".repeat(4000)}\n\n**two**`) ?? "";
    assert.match(html, /<strong>one<\/strong>.*\*a_\*a_.*<strong>two<\/strong>/s);
  });

  test("has its tags as text", () => {
    const html = markdownToHtml("<thinking>x</thinking>I did Array<T>, **then**\n\n<div>\nmore\n</div>") ?? "";
    assert.match(html, /&lt;thinking&gt;x&lt;\/thinking&gt;I did Array&lt;T&gt;, <strong>then<\/strong>/);
    assert.match(html, /&lt;div&gt;<br>more.*&lt;\/div&gt;/s);
  });

  test("of an ordinary kind is read as Marked reads it", async () => {
    const tagsAreText = { html: () => undefined, tag: () => undefined };
    const marked = new Marked({ gfm: true, breaks: true, tokenizer: tagsAreText });
    const pages = (await readFolder("docs")).filter(({ path }) => path.endsWith(".md"));
    assert.ok(pages.length > 5);
    for (const { path, text } of pages.filter((page) => page.text.length < 100_000))
      assert.equal(markdownToHtml(text), marked.parse(text, { async: false }), path);
  });
});
