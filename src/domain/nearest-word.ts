/** The largest edit distance of a suggestion, absolute and relative to the word's length. */
const MOST_EDITS = 3;
const LARGEST_SHARE = 0.4;

/** The candidate with the smallest edit distance; undefined if none is close. */
export function nearestWord(word: string, words: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let fewest = Math.min(MOST_EDITS, Math.max(1, Math.floor(word.length * LARGEST_SHARE))) + 1;
  for (const candidate of words) {
    const edits = editsBetween(word.toLowerCase(), candidate.toLowerCase(), fewest);
    if (edits < fewest) [nearest, fewest] = [candidate, edits];
  }
  return nearest;
}

/** The error text for words that are not in the list. `kind` includes its article: "an option". */
export function unknownWords(words: readonly string[], kind: string, candidates: readonly string[]): string {
  const messages = words.slice(0, MOST_MESSAGES).map((word) => unknownWord(word, kind, candidates));
  return words.length <= MOST_MESSAGES
    ? messages.join("; ")
    : `${messages.join("; ")}; and ${words.length - MOST_MESSAGES} more`;
}

/** Bounds the answer to a request with thousands of unknown words. */
const MOST_MESSAGES = 5;
const LONGEST_WORD = 100;

function unknownWord(word: string, kind: string, candidates: readonly string[]): string {
  const shown = JSON.stringify(word.slice(0, LONGEST_WORD)).slice(1, -1);
  const nearest = nearestWord(word, candidates);
  if (nearest !== undefined) return `${shown} is not ${kind}; did you mean ${nearest}?`;
  return `${shown} is not ${kind}; ${candidates.length === 0 ? "there are none" : `use one of ${candidates.join(", ")}`}`;
}

/** Damerau–Levenshtein distance, at most `limit`. */
function editsBetween(one: string, other: string, limit: number): number {
  if (Math.abs(one.length - other.length) >= limit) return limit;
  let before: number[] = [];
  let above = Array.from({ length: other.length + 1 }, (_, place) => place);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        (above[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (above[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, above] = [above, current];
  }
  return Math.min(limit, above[other.length] ?? 0);
}
