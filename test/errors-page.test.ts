import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR_CODES } from "../src/domain/errors.ts";
import { readFolder } from "./repository-files.ts";

type Entry = { code: string; meaning: string; next: string };

async function entriesOfThePage(): Promise<Entry[]> {
  const page = (await readFolder("docs")).find((file) => file.path === "errors.md");
  assert.ok(page, "docs/errors.md is missing");
  const rows = page.text.matchAll(/^\| `([^`]*)` \|([^|]*)\|([^|]*)\|$/gm);
  return [...rows].map(([, code = "", meaning = "", next = ""]) => ({
    code,
    meaning: meaning.trim(),
    next: next.trim(),
  }));
}

test("the page lists exactly the codes that the program has, in the same order", async () => {
  const listed = (await entriesOfThePage()).map((entry) => entry.code);
  assert.deepEqual(listed, [...ERROR_CODES]);
});

test("every code on the page has a meaning and a next move, each a sentence", async () => {
  for (const { code, meaning, next } of await entriesOfThePage()) {
    for (const text of [meaning, next]) assert.match(text, /^`?[A-Z].{15,}\.$/s, `${code}: ${text}`);
  }
});
