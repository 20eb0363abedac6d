/** Edits that may lie between what was written and what was meant, and the share of the word that they may be. */
const MOST_EDITS = 3;
const LARGEST_SHARE = 0.4;

/** The word that was probably meant: the one with the fewest edits between; undefined where none is near. */
export function nearestWord(word: string, words: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let fewest = Math.min(MOST_EDITS, Math.max(1, Math.floor(word.length * LARGEST_SHARE))) + 1;
  for (const candidate of words) {
    const edits = editsBetween(word.toLowerCase(), candidate.toLowerCase(), fewest);
    if (edits < fewest) [nearest, fewest] = [candidate, edits];
  }
  return nearest;
}

/** What to say to somebody who wrote words that are none of these. `kind` has its article: "an option". */
export function unknownWords(words: readonly string[], kind: string, known: readonly string[]): string {
  const told = words.slice(0, MOST_TOLD).map((word) => unknownWord(word, kind, known));
  return words.length <= MOST_TOLD ? told.join("; ") : `${told.join("; ")}; and ${words.length - MOST_TOLD} more`;
}

/** Whoever sends thousands is not answered with as many lines. */
const MOST_TOLD = 5;
const LONGEST_SHOWN = 100;

function unknownWord(word: string, kind: string, known: readonly string[]): string {
  const shown = JSON.stringify(word.slice(0, LONGEST_SHOWN)).slice(1, -1);
  const nearest = nearestWord(word, known);
  if (nearest !== undefined) return `${shown} is not ${kind}; did you mean ${nearest}?`;
  return `${shown} is not ${kind}; there ${known.length === 0 ? "is none" : `are ${known.join(", ")}`}`;
}

/** Letters to add, leave out, change or swap with the next; `enough` where there are that many or more. */
function editsBetween(one: string, other: string, enough: number): number {
  if (Math.abs(one.length - other.length) >= enough) return enough;
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
  return Math.min(enough, above[other.length] ?? 0);
}
