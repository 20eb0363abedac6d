import { setImmediate as turn } from "node:timers/promises";
import { words } from "../../domain/words.ts";

/** A line of a text, or a part of a very long one. */
export type LinePiece = { line: number; text: string };

/** Longer lines are split into parts that overlap, so that a word at a boundary is whole in one of them. */
const LONGEST_PIECE = 4000;
const OVERLAP = 200;
/** Yields to other work after this many characters. */
const SLICE = 32 * 1024;

/** The lines of a text that may be megabytes long, without blocking the event loop for long. */
export async function* linePieces(text: string): AsyncGenerator<LinePiece, void, undefined> {
  let untilTurn = SLICE;
  let line = 1;
  for (let start = 0; start <= text.length; line++) {
    const newline = text.indexOf("\n", start);
    const end = newline < 0 ? text.length : newline;
    for (let from = start; from === start || from < end; from += LONGEST_PIECE) {
      const piece = text.slice(Math.max(start, from - OVERLAP), Math.min(end, from + LONGEST_PIECE));
      yield { line, text: piece.trim() };
      untilTurn -= piece.length + 1;
      if (untilTurn > 0) continue;
      untilTurn = SLICE;
      await turn();
    }
    start = end + 1;
  }
}

export type RankedPiece = LinePiece & { score: number };

/** The lines that contain any of the words, those with the most words first. */
export async function rankLines(text: string, searchWords: readonly string[]): Promise<RankedPiece[]> {
  const ranked: RankedPiece[] = [];
  for await (const piece of linePieces(text)) {
    const score = scoreOf(piece.text, searchWords);
    if (score > 0) ranked.push({ ...piece, score });
  }
  return ranked.sort((a, b) => b.score - a.score || a.line - b.line);
}

/** How many of the words a text contains. */
export function scoreOf(text: string, searchWords: readonly string[]): number {
  const own = new Set(words(text));
  return searchWords.filter((word) => own.has(word)).length;
}

/** The most words used of a question; a longer one is a text. */
export const MOST_WORDS = 64;

export const questionWords = (question: string): string[] =>
  [...new Set(words(question).filter((word) => word.length > 3))].slice(0, MOST_WORDS);
