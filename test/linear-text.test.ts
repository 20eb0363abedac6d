import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseContextPrompt } from "../src/monikers/chat/parse-context-prompt.ts";

/**
 * Every function that reads text of people, models, files or the network, with the texts that would cost it most if it
 * backtracked or began again at each character. A new one belongs in this table.
 */
const READERS: Record<string, { read: (text: string) => unknown; attacks?: (size: number) => Record<string, string> }> =
  {
    parseContextPrompt: {
      read: parseContextPrompt,
      attacks: (size) => ({
        "spaces before the last word of a reply": `Summarize our conversation and save to x. Reply only with: a${" ".repeat(size)}b`,
        "spaces for a reply": `Summarize our conversation and save to x. Reply only with:${" ".repeat(size)}`,
        "spaces after the path": `Summarize our conversation and save to x.${" ".repeat(size)}`,
        "a path without an end": `Summarize our conversation and save to ${".".repeat(size)}`,
        "a prompt in a prompt": "Summarize our conversation and save to x. Reply only with: ".repeat(size / 60),
        "spaces before the last word of a load": `Load context from x and use it as background for our conversation. Reply: a${"\n".repeat(size)}b`,
        "spaces before a purpose": `Load context from x ${" ".repeat(size)}and`,
      }),
    },
  };

/** Texts that are hard for many readers. */
const anyAttacks = (size: number): Record<string, string> =>
  Object.fromEntries(
    [
      " ",
      "\n",
      "\t \n",
      "a",
      "a ",
      "!",
      ".",
      "> ",
      ">\n",
      "`",
      "```\n",
      "*",
      "**a",
      "[",
      "![",
      "(",
      "{",
      '"',
      "\\",
      '\\"',
      "<",
      "&",
    ].map((unit) => [JSON.stringify(unit), unit.repeat(size / unit.length)]),
  );

const SIZE = 1024 * 1024;
const MOST_MS = 50;
/** On a busy machine one try may be interrupted; a slow function is slow each time. */
const TRIES = 5;

for (const [name, { read, attacks }] of Object.entries(READERS))
  describe(`${name} reads a megabyte in ${MOST_MS} ms`, () => {
    for (const [attack, text] of Object.entries({ ...anyAttacks(SIZE), ...attacks?.(SIZE) }))
      test(`of ${attack}`, () => {
        const times: number[] = [];
        while (times.length < TRIES && !times.some((time) => time < MOST_MS)) {
          const begin = performance.now();
          read(text);
          times.push(performance.now() - begin);
        }
        assert.ok(Math.min(...times) < MOST_MS, `it took ${times.map(Math.round).join(", ")} ms`);
      });
  });
