import { shorten } from "../extract.ts";
import { questionWords, rankLines, scoreOf } from "./line-pieces.ts";
import type { Workspace } from "./workspace.ts";

const LONGEST_QUOTE = 1000;
const MOST_QUOTES = 5;

/** Lines of a text and of the workspace's files that contain words of a question, best matches first. */
export async function quotesFor(question: string, background: string, workspace: Workspace): Promise<string[]> {
  const searchWords = questionWords(question);
  if (searchWords.length === 0) return [];
  const remembered = (await rankLines(background, searchWords))
    .slice(0, MOST_QUOTES)
    .map(({ text }) => `> ${shorten(text, LONGEST_QUOTE)}`);
  const passages = (await workspace.search(searchWords, 200))
    .map((passage) => ({ ...passage, score: scoreOf(passage.text, searchWords) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST_QUOTES)
    .map(({ path, line, text }) => `> ${shorten(text, LONGEST_QUOTE)}\n  (${path}:${line})`);
  return [...remembered, ...passages];
}
