import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { words } from "../src/domain/words.ts";
import { markdownToHtml } from "../src/markdown/markdown-to-html.ts";
import { parseContextPrompt } from "../src/monikers/chat/parse-context-prompt.ts";
import { extract, sentencesOf } from "../src/monikers/extract.ts";
import { GrowingFields } from "../src/monikers/llm/growing-text.ts";
import { objectIn, withoutThoughts } from "../src/monikers/llm/json-reply.ts";
import { toIndexedWords } from "../src/store/postgres/tables.ts";
import { MarkdownLines } from "../src/surfaces/cli/markdown.ts";
import { oneLine } from "../src/surfaces/cli/output.ts";
import { fromRoomEvent } from "../src/surfaces/matrix/events/converter.ts";
import { toHtml } from "../src/surfaces/matrix/outgoing/markdown.ts";
import { split } from "../src/surfaces/matrix/outgoing/split.ts";
import { globs } from "../src/surfaces/matrix/text/globs.ts";

type Reader = {
  read: (text: string) => unknown;
  /** In addition to those tried on every reader. */
  attacks?: (size: number) => Record<string, string>;
  /** For readers that produce something for each of half a million lines or sentences. */
  most_ms?: number;
};

const SIZE = 1024 * 1024;
const MOST_MS = 50;
/** The first tries may run code that is not compiled yet; a slow function is slow every time. */
const TRIES = 10;
/** Characters per piece of a stream. */
const PIECE = 64;

/**
 * Every function that reads text from people, models, files or the network, with the texts that would cost it most if it
 * backtracked or started over at each character. A new one belongs in this table.
 */
const READERS: Record<string, Reader> = {
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
  words: { read: words, attacks: letters, most_ms: 150 },
  toIndexedWords: { read: toIndexedWords, attacks: letters, most_ms: 150 },
  sentencesOf: { read: (text) => sentencesOf(text, 4000), most_ms: 150 },
  extract: { read: (text) => extract(text, 8000), most_ms: 150 },
  objectIn: {
    read: objectIn,
    // JSON.parse alone takes half of it.
    most_ms: 100,
    attacks: (size) => ({
      "a fence that is never closed": `\`\`\`json${"\n".repeat(size)}`,
      "a string that is never closed": `{"a": "${'\\"'.repeat(size / 2)}`,
      "strings of escapes": `{"a": ${'"\\'.repeat(size / 2)}`,
      "commas before spaces": `{"a": 1,${" ".repeat(size)}x`,
      "commas and spaces": `{${",  ".repeat(size / 3)}}`,
      "an object that is never closed": '{"a":'.repeat(size / 5),
    }),
  },
  withoutThoughts: { read: withoutThoughts, attacks: (size) => ({ thoughts: `<think>${"</think".repeat(size / 7)}` }) },
  GrowingFields: {
    read: (text) => {
      const fields = new GrowingFields(() => {});
      for (let end = PIECE; end <= text.length; end += PIECE) fields.update(text.slice(0, end));
    },
    attacks: (size) => ({
      "thoughts without an end": `<think>${"</think".repeat(size / 7)}`,
      "spaces before an answer": " ".repeat(size),
      "a growing text": `{"text": "${"a".repeat(size)}`,
      "a growing key": `{"${"a".repeat(size)}`,
      "half characters": `{"text": "${"\ud83d".repeat(size)}`,
      "a growing escape": `{"text": "${"\\u00".repeat(size / 4)}`,
    }),
  },
  MarkdownLines: {
    read: (text) => {
      const lines = new MarkdownLines(true);
      for (let at = 0; at < text.length; at += PIECE) lines.push(text.slice(at, at + PIECE));
      lines.end();
    },
    most_ms: 300,
  },
  oneLine: { read: (text) => oneLine(text, 80) },
  markdownToHtml: { read: markdownToHtml },
  "toHtml of the largest message": { read: (text) => toHtml(text.slice(0, 12_000)) },
  split: {
    read: split,
    most_ms: 200,
    attacks: (size) => ({ "short paragraphs": "a\n\n".repeat(size / 3), code: `\`\`\`\n${"a\n".repeat(size / 2)}` }),
  },
  "globs, of who is allowed": {
    read: globs("@a*b*c*d*e*f*:x, *-*-*-*-?-*z"),
    attacks: (size) => ({
      "almost a match": `@${"abcdef".repeat(size / 6)}`,
      "almost another": "-a".repeat(size / 2),
    }),
  },
  "fromRoomEvent, of what was said": {
    read: (body) =>
      fromRoomEvent(
        {
          event_id: "$1",
          room_id: "!r:x",
          type: "m.room.message",
          sender: "@a:x",
          origin_server_ts: 0,
          content: { msgtype: "m.text", body, "m.relates_to": { "m.in_reply_to": { event_id: "$0" } } },
        },
        { user_id: "@bot:x", display_name: "Bot" },
      ),
    attacks: (size) => ({
      "a long command": `!${"a".repeat(size)}(`,
      "spaces after a command": `!a${" ".repeat(size)}b`,
      "a quote of spaces": `>${" ".repeat(size)}`,
      "a quote of one line": `> ${"a".repeat(size)}\nb`,
      "a name without an end": `> <@${"a".repeat(size)}\nb`,
      "colons after the name": `@bot:x${":".repeat(size)}`,
      "spaces after the name": `bot:${" ".repeat(size)}b`,
    }),
  },
};

/** Single characters that become many when normalized, `size` bytes of each. */
function letters(size: number): Record<string, string> {
  const units = ["\ufdfa", "\ufdfb", "\u321d", "\u3316", "\u33af", "\ufb03", "각", "ё", "茶", "İ", "½", "\u{1d160}"];
  return Object.fromEntries(units.map((unit) => [unit, unit.repeat(size / Buffer.byteLength(unit))]));
}

/** Texts that are hard for many readers. */
const UNITS = [
  " ",
  "\n",
  "\t \n",
  "a",
  "a ",
  "a. ",
  "a\n\n",
  "!",
  ".",
  ". ",
  "> ",
  ">\n",
  "- ",
  "`",
  "`a",
  "```\n",
  "*",
  "**a",
  "[",
  "![",
  "[a](",
  "(",
  "{",
  "}",
  '"',
  "\\",
  '\\"',
  "<",
  "&",
  ",",
  "é",
  "e\u0301",
  "\u0301\u0327",
  "Σ",
  "😀",
  "\ud83d",
];
const ANY_ATTACKS = Object.fromEntries(
  UNITS.map((unit) => [JSON.stringify(unit), unit.repeat(SIZE / Buffer.byteLength(unit))]),
);

/** The milliseconds that this thread works, independent of other load on the machine. */
function workOf(run: () => unknown): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

for (const [name, { read, attacks, most_ms = MOST_MS }] of Object.entries(READERS))
  describe(`${name} reads a megabyte in ${most_ms} ms`, () => {
    for (const [attack, text] of Object.entries({ ...ANY_ATTACKS, ...attacks?.(SIZE) }))
      test(`of ${attack}`, () => {
        const times: number[] = [];
        while (times.length < TRIES && !times.some((time) => time < most_ms)) times.push(workOf(() => read(text)));
        assert.ok(Math.min(...times) < most_ms, `it took ${times.map(Math.round).join(", ")} ms`);
      });
  });

test("a word of many megabytes, too long for a pattern's stack, is read as several", () => {
  for (const letter of ["茶", "\u0301"])
    assert.ok(words(letter.repeat(8 * SIZE)).every(({ length }) => length <= 1000));
});
