import { words } from "../domain/words.ts";

/** Truncates a text that is too long. */
export const shorten = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most)}…` : text);

const SENTENCE_END = /(?<=[.!?…])\s+|\n+/gu;

/** The sentences and lines of a text. */
export function* eachSentence(text: string, longest: number): Generator<string, void, undefined> {
  let start = 0;
  for (const { index, 0: gap } of text.matchAll(SENTENCE_END)) {
    yield* pieces(text.slice(start, index).trim(), longest);
    start = index + gap.length;
  }
  yield* pieces(text.slice(start).trim(), longest);
}

/** Splits a sentence that is too long, losing nothing. */
function* pieces(sentence: string, longest: number): Generator<string, void, undefined> {
  for (let at = 0; at < sentence.length; at += longest) yield sentence.slice(at, at + longest);
}

export const sentencesOf = (text: string, longest: number): string[] => [...eachSentence(text, longest)];

/** The sentences whose words occur most often in the text, in their original order. */
export function topSentences(sentences: string[], most: number): string[] {
  const counts = new Map<string, number>();
  const wordsOf = sentences.map(words);
  for (const own of wordsOf) for (const word of own) if (word.length > 3) counts.set(word, (counts.get(word) ?? 0) + 1);
  const weigh = (own: string[]) =>
    own.reduce((sum, word) => sum + (counts.get(word) ?? 0), 0) / Math.max(8, own.length);
  const ranked = sentences.map((sentence, index) => ({ sentence, index, weight: weigh(wordsOf[index] ?? []) }));
  const best = ranked.sort((a, b) => b.weight - a.weight || a.index - b.index).slice(0, most);
  return best.sort((a, b) => a.index - b.index).map(({ sentence }) => sentence);
}

/** The most informative sentences that fit into `most` characters. */
export function extract(text: string, most: number): string {
  const sentences = [...new Set(sentencesOf(text, 400))];
  const share = Math.max(1, Math.floor(sentences.length * Math.min(1, most / Math.max(1, text.length))));
  return topSentences(sentences, share).join("\n").slice(0, most);
}
