import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { FrameIn } from "../../src/domain/step-frame.ts";
import { chat } from "../../src/monikers/builtin/chat.ts";
import { echo } from "../../src/monikers/builtin/echo.ts";
import { joke } from "../../src/monikers/builtin/joke.ts";
import { research } from "../../src/monikers/builtin/research.ts";
import { summarize } from "../../src/monikers/builtin/summarize.ts";
import type { Moniker } from "../../src/monikers/moniker.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { scratchFolder } from "../store/scratch-folder.ts";

const SIZE = 1024 * 1024;
const MOST_MS = 200;
/** The first tries may run code that is not compiled yet; a step that blocks the event loop does so every time. */
const TRIES = 4;

const filled = (unit: string, bytes = SIZE): string => unit.repeat(bytes / Buffer.byteLength(unit));
const differentWords = (count: number): string => Array.from({ length: count }, (_, at) => `word${at}`).join(" ");

const TEXTS: Record<string, string> = {
  spaces: filled(" "),
  "one word": filled("a"),
  "short words": filled("a "),
  "different words": differentWords(90_000),
  "words with accents": filled("été "),
  marks: filled("\u0301\u0327"),
  "short sentences": filled("Why. "),
  lines: filled("tulip\n"),
  "a prompt to save": `Summarize our conversation and save to x. Reply only with: a${filled(" ")}b`,
  "a search": `search ${differentWords(90_000)}`,
  "a file": `write a.txt: ${filled("x")}`,
};

const FRAMES: [name: string, moniker: Moniker, frame: (text: string) => FrameIn, params: (text: string) => unknown][] =
  [
    ["chat", chat, (text) => ({ step: "1", state: {}, guidance: [text] }), () => ({})],
    [
      "chat, after a long conversation",
      chat,
      (text) => ({
        step: "1",
        state: {
          turns: Array.from({ length: 20_000 }, () => ({ role: "user", text: "a" })),
          background: [{ path: "x", text: filled("tulip word1 ", 60_000) }],
        },
        guidance: [text],
      }),
      () => ({}),
    ],
    ["echo", echo, (text) => ({ step: "1", state: {}, guidance: [text] }), () => ({})],
    ["joke", joke, (text) => ({ step: "1", state: {}, guidance: [text] }), () => ({ subject: "tulips" })],
    [
      "research",
      research,
      (text) => ({ step: "search/1", state: {}, guidance: [text] }),
      () => ({ question: "tulips" }),
    ],
    [
      "research, reading",
      research,
      (text) => ({ step: "read/1", state: { wanted: ["tulip"], paths: ["lines.txt"], found: [] }, guidance: [text] }),
      () => ({ question: "tulips" }),
    ],
    ["summarize", summarize, () => ({ step: "chunk/1", state: {} }), (text) => ({ text: `${text}.` })],
    ["summarize, of a file", summarize, () => ({ step: "chunk/1", state: {} }), () => ({ path: "lines.txt" })],
  ];

describe("a megabyte of guidance", () => {
  let folder: Awaited<ReturnType<typeof scratchFolder>>;
  before(async () => {
    folder = await scratchFolder();
    await mkdir(join(folder.path, "notes"));
    await writeFile(join(folder.path, "lines.txt"), filled("Every tulip has a word1. ", SIZE));
    await writeFile(join(folder.path, "notes/short.txt"), filled("a tulip\n", SIZE / 4));
    await writeFile(join(folder.path, "notes/accents.txt"), filled("é tulipé\n", SIZE / 4));
  });
  after(() => folder[Symbol.asyncDispose]());

  for (const [name, moniker, frame, params] of FRAMES)
    test(`does not hold the event loop for ${MOST_MS} ms in one go in a step of ${name}`, async () => {
      const step = {
        signal: new AbortController().signal,
        ids: { agent_id: "a", session_id: "s", conversation_id: null, iteration: 0 },
        emit: () => {},
      };
      const tools = new ToolRegistry({ workspace: folder.path, servers: [] }).forStep({ ...step, options: {} });
      for (const [what, text] of Object.entries(TEXTS)) {
        const turns: number[] = [];
        while (turns.length < TRIES && !turns.some((ms) => ms < MOST_MS))
          turns.push(
            await longestTurn(() =>
              moniker.step(frame(text), {
                ...step,
                params: params(text),
                attempt: { number: 1, after: null },
                llm: null,
                tools,
                unread: async () => [],
              }),
            ),
          );
        assert.ok(Math.min(...turns) < MOST_MS, `${what}: ${turns.map(Math.round).join(", ")} ms`);
      }
    });
});

/** The longest that this thread works before it returns to the event loop, in milliseconds. */
async function longestTurn(work: () => unknown): Promise<number> {
  let longest = 0;
  let isOver = false;
  let last = process.threadCpuUsage();
  const measure = (): void => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, (user + system) / 1000);
    last = process.threadCpuUsage();
    if (!isOver) setImmediate(measure);
  };
  setImmediate(measure);
  await work();
  isOver = true;
  measure();
  return longest;
}
