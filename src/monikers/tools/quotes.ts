import { shorten } from "../extract.ts";
import { questionWords, rankLines, scoreOf } from "./line-pieces.ts";
import type { Workspace } from "./workspace.ts";

const LONGEST_QUOTE = 1000;
const MOST_QUOTES = 5;

/** Lines of a text and of the workspace's files that have the words of a question, those with most of them first. */
export async function quotesFor(asked: string, known: string, workspace: Workspace): Promise<string[]> {
  const wanted = questionWords(asked);
  if (wanted.length === 0) return [];
  const remembered = (await rankLines(known, wanted))
    .slice(0, MOST_QUOTES)
    .map(({ text }) => `> ${shorten(text, LONGEST_QUOTE)}`);
  const found = (await workspace.search(wanted, 200))
    .map((passage) => ({ ...passage, score: scoreOf(passage.text, wanted) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST_QUOTES)
    .map(({ path, line, text }) => `> ${shorten(text, LONGEST_QUOTE)}\n  (${path}:${line})`);
  return [...remembered, ...found];
}
