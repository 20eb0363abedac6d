import { words } from "../../domain/words.ts";

/** The server's limits: a word of 2 KiB, 16,383 places, 255 places of a word, 1 MiB of words. */
const LONGEST_WORD = 200;
const MOST_PLACES = 16_000;
const MOST_PLACES_OF_WORD = 250;
const MOST_CHARACTERS = 200_000;

/** A text as the full-text index keeps it: words folded by us, so that case and diacritics never matter. Null where there is none. */
export function toIndexedWords(text: string | null): string | null {
  if (text === null) return null;
  const places = new Map<string, number[]>();
  let characters = 0;
  for (const [at, word] of words(text).entries()) {
    if (characters > MOST_CHARACTERS) break;
    const short = shortened(word);
    const wordPlaces = places.get(short);
    if (!wordPlaces) {
      characters += short.length + 20;
      places.set(short, [Math.min(at + 1, MOST_PLACES)]);
    } else if (wordPlaces.length < MOST_PLACES_OF_WORD && at < MOST_PLACES) {
      characters += 6;
      wordPlaces.push(at + 1);
    }
  }
  if (places.size === 0) return null;
  return [...places].map(([word, list]) => `'${word}':${list.join(",")}`).join(" ");
}

/** The question as the index takes it: every word. Null where it has none. */
export function toWordQuery(question: string): string | null {
  const queryWords = [...new Set(words(question).map(shortened))];
  return queryWords.length === 0 ? null : queryWords.map((word) => `'${word}'`).join(" & ");
}

const shortened = (word: string): string =>
  word.length > LONGEST_WORD ? word.slice(0, LONGEST_WORD).toWellFormed() : word;
