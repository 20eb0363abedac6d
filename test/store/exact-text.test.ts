import assert from "node:assert/strict";
import { test } from "node:test";
import { EMBEDDED_TABLES, fromText, toText } from "../../src/store/embedded/tables.ts";

test("a text that an earlier version stored is read as it was, also where it begins with the mark", () => {
  for (const stored of ["", "plain", "\u0001", '\u0001"a"', "\u0001{}", "\u0001[1]", '\u0001 "\\ud83d"', "a\u0001b"]) {
    const values = EMBEDDED_TABLES.toValues("conversations", { title: "x" }).map((value) =>
      value === "x" ? stored : value,
    );
    if (stored === '\u0001"a"')
      assert.equal(EMBEDDED_TABLES.toPort("conversations", values).title, stored, "no text is stored like this");
    assert.equal(fromText(stored), stored);
  }
});

test("every text comes back from what is stored, and that is valid UTF-8", () => {
  for (const text of [
    "",
    "plain",
    "\ud83d",
    "a\udd11",
    '\u0001"a"',
    "\u0001\u0001",
    toText("\ud83d"),
    toText(toText("\ud83d")),
  ]) {
    assert.ok(toText(text).isWellFormed());
    assert.equal(fromText(toText(text)), text);
  }
});
